import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Does an automatic commit pass the record that the application works on?
 *
 *   java -cp 'LIB/*' AutoCommitPassesRecord.java HOST:PORT consumer|classic [SECONDS]     works until it does, and dies
 *   java -cp 'LIB/*' AutoCommitPassesRecord.java HOST:PORT consumer|classic TOPIC GROUP   where does who takes over begin?
 *
 * One thread polls and works, one record at a time. During the work on a record it asks an admin client what is
 * committed: with at-least-once delivery never more than this record's offset, for the next poll has not begun.
 */
public class AutoCommitPassesRecord {
    static Properties with(String... pairs) {
        Properties made = new Properties();
        for (int at = 0; at < pairs.length; at += 2) {
            made.put(pairs[at], pairs[at + 1]);
        }
        return made;
    }

    static KafkaConsumer<String, String> consumer(String servers, String protocol, String group) {
        String text = "org.apache.kafka.common.serialization.StringDeserializer";
        return new KafkaConsumer<>(with("bootstrap.servers", servers, "group.id", group, "group.protocol", protocol,
            "enable.auto.commit", "true", "auto.commit.interval.ms", "100", "max.poll.records", "1",
            "auto.offset.reset", "earliest", "key.deserializer", text, "value.deserializer", text));
    }

    public static void main(String[] args) throws Exception {
        String servers = args[0];
        String protocol = args[1];
        Properties version = new Properties();
        version.load(KafkaConsumer.class.getResourceAsStream("/kafka/kafka-version.properties"));
        System.out.println("kafka-clients " + version.get("version") + ", group.protocol=" + protocol);
        if (args.length > 3) {
            takeOver(servers, protocol, args[2], args[3]);
        } else {
            work(servers, protocol, args.length > 2 ? Integer.parseInt(args[2]) : 20);
        }
    }

    static void work(String servers, String protocol, int seconds) throws Exception {
        String topic = "t" + System.nanoTime();
        String group = "g" + topic;
        TopicPartition only = new TopicPartition(topic, 0);
        Admin admin = Admin.create(with("bootstrap.servers", servers));
        admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
        String text = "org.apache.kafka.common.serialization.StringSerializer";
        try (var producer = new KafkaProducer<String, String>(
                with("bootstrap.servers", servers, "key.serializer", text, "value.serializer", text))) {
            for (int number = 0; number < 20_000; number++) {
                producer.send(new ProducerRecord<>(topic, Integer.toString(number)));
            }
        }
        var consumer = consumer(servers, protocol, group);
        consumer.subscribe(List.of(topic));
        long until = System.nanoTime() + seconds * 1_000_000_000L;
        int worked = 0;
        while (System.nanoTime() < until) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                Thread.sleep(3); // the work on it
                worked++;
                var stored = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(only);
                if (stored != null && stored.offset() > record.offset()) {
                    System.out.println("record " + record.offset() + " is in work, and " + stored.offset()
                        + " is committed: RED. This process dies now; who takes over begins behind the record:");
                    System.out.println(String.join(" ", Arrays.asList(servers, protocol, topic, group)));
                    Runtime.getRuntime().halt(1);
                }
            }
        }
        System.out.println(worked + " records, and no commit passed the one in work: GREEN");
        Runtime.getRuntime().halt(0);
    }

    static void takeOver(String servers, String protocol, String topic, String group) {
        var consumer = consumer(servers, protocol, group);
        consumer.subscribe(List.of(topic));
        while (true) { // the dead member's session has to end first
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
                System.out.println("the first record that I am given is " + record.offset());
                Runtime.getRuntime().halt(0);
            }
        }
    }
}
