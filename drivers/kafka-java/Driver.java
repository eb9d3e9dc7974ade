/*
 * The driver protocol, version 1, over Apache Kafka's Java client: one process is one client of a plan.
 *
 * JSON lines come in on stdin and go out on stdout (specs/schemas/driver.v1.json). INORDER_CLIENT_OPTIONS holds the
 * library's settings as a JSON object, credentials too: they stand in no command line and in no log.
 *
 * The application that is played here is that of the documentation of KafkaConsumer: one thread polls, and works on all
 * that a poll has returned before it polls again.
 *
 * - Manual commits (`enable.auto.commit` false): after each call that ended well the offset behind it is committed, and
 *   the answer is waited for. A call that failed is made again: the application waits, and seeks back.
 * - Automatic commits: nobody commits but the library, which tells nobody; so no commit is told, and a call ends
 *   (`finished`) only when the next poll begins: "you must consume all data returned from each call to poll before any
 *   subsequent calls".
 * - `added` and `dropped` are the rebalance's callbacks. At each `added` the stored offset is looked up.
 * - When stdin ends, whoever started us is gone: we halt at once, and nothing is committed or given back.
 */

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;

import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

public final class Driver {
    static final int PROTOCOL = 1;
    static final int LINE_BYTES_MAX = 1 << 20;
    static final String BROKER = "b0";
    static final Duration POLL = Duration.ofMillis(50);
    static final Duration ANSWER = Duration.ofSeconds(10);
    static final Duration CLOSE = Duration.ofSeconds(5);
    static final List<String> DONE = List.of("success", "commit", "rollback");

    private final PrintStream out;
    private final JSONObject options;
    private final AtomicLong numbers = new AtomicLong();
    private boolean greeted;
    private Worker worker;
    private KafkaProducer<String, String> producer;
    private Semaphore free;

    private Driver(PrintStream out, JSONObject options) {
        this.out = out;
        this.options = options;
    }

    public static void main(String[] args) throws IOException {
        PrintStream out = System.out;
        System.setOut(System.err); // what a library prints must not stand between our lines
        String options = System.getenv().getOrDefault("INORDER_CLIENT_OPTIONS", "{}");
        new Driver(out, new JSONObject(options)).serve(new BufferedInputStream(System.in));
        Runtime.getRuntime().halt(0);
    }

    // ------------------------------------------------------------------------------------------ requests

    private void serve(InputStream in) throws IOException {
        while (true) {
            Object id = JSONObject.NULL;
            try {
                String line = readLine(in);
                if (line == null) {
                    return;
                }
                JSONObject asked = new JSONObject(line);
                id = asked.getLong("id");
                if (answer((Long) id, asked)) {
                    return;
                }
            } catch (Wrong | JSONException error) {
                refuse(id, error.getMessage());
            } catch (Exception error) {
                refuse(id, error.toString());
            }
        }
    }

    /** One request. True when the driver is to end. */
    private boolean answer(long id, JSONObject asked) throws Exception {
        String verb = asked.getString("verb");
        if (!greeted && !verb.equals("hello")) {
            throw new Wrong("the first request must be hello");
        }
        switch (verb) {
            case "hello":
                emit(hello(id, asked));
                return false;
            case "start":
                start(asked);
                emit(reply(id));
                return false;
            case "send":
                send(id, asked);
                return false;
            case "stop":
                if (worker != null) {
                    worker.stop();
                }
                if (producer != null) {
                    producer.close(CLOSE);
                }
                emit(reply(id));
                return true;
            default:
                throw new Wrong("unknown verb " + verb.substring(0, Math.min(40, verb.length())));
        }
    }

    private JSONObject hello(long id, JSONObject asked) throws Exception {
        if (asked.getLong("version") != PROTOCOL) {
            throw new Wrong("this driver speaks version " + PROTOCOL + ", not " + asked.get("version"));
        }
        greeted = true;
        List<String> told = new ArrayList<>(List.of("delivered", "finished", "sent", "added", "dropped", "looked_up"));
        told.add("gave_up"); // a consumer gives no record up: with it that can't happen
        if (!automatic()) {
            told.add("committed");
        }
        Properties version = new Properties();
        try (InputStream in = KafkaConsumer.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            version.load(in);
        }
        return reply(id).put("version", PROTOCOL).put("driver", "kafka-java")
            .put("client", version.getProperty("version")).put("events", new JSONArray(told));
    }

    private boolean automatic() {
        return "true".equals(options.optString("enable.auto.commit", "false"));
    }

    private void start(JSONObject asked) throws Wrong {
        if (worker != null || producer != null) {
            throw new Wrong("this process has started its client already");
        }
        if (asked.getString("role").equals("producer")) {
            free = new Semaphore(Integer.parseInt(options.optString("app.in.flight", "1")));
            producer = new KafkaProducer<>(settings(Map.of(
                "acks", "all", "enable.idempotence", "true", "linger.ms", "0", "client.id", asked.getString("client"),
                "key.serializer", StringSerializer.class.getName(),
                "value.serializer", StringSerializer.class.getName())));
        } else {
            worker = new Worker(asked);
            worker.thread.start();
        }
    }

    /** The options are the user's, and win. */
    private Properties settings(Map<String, String> own) {
        Properties made = new Properties();
        made.putAll(own);
        for (String name : options.keySet()) {
            boolean credentials = name.equals("sasl.username") || name.equals("sasl.password");
            if (!credentials && !name.equals("client.id") && !name.startsWith("app.") && !name.startsWith("server.")) {
                made.put(name, options.get(name).toString());
            }
        }
        if (options.has("sasl.username")) {
            String module = options.optString("sasl.mechanism", "PLAIN").startsWith("SCRAM")
                ? "org.apache.kafka.common.security.scram.ScramLoginModule"
                : "org.apache.kafka.common.security.plain.PlainLoginModule";
            made.put("sasl.jaas.config", module + " required username=" + quoted("sasl.username")
                + " password=" + quoted("sasl.password") + ";");
        }
        return made;
    }

    private String quoted(String name) {
        return '"' + options.optString(name).replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }

    /** In the order asked for: one after the other, or `app.in.flight` at a time. */
    private void send(long id, JSONObject asked) throws Wrong, InterruptedException {
        if (producer == null) {
            throw new Wrong("send needs a client started as a producer");
        }
        String key = asked.optString("key", null);
        ProducerRecord<String, String> record =
            new ProducerRecord<>(asked.getString("topic"), key, asked.getString("body"));
        record.headers().add("id", utf8(asked.getString("message")));
        record.headers().add("seq", utf8(asked.has("key_seq") ? asked.get("key_seq").toString() : ""));
        free.acquire();
        try {
            producer.send(record, (place, error) -> answered(id, place, error));
        } catch (RuntimeException error) { // it never began: nobody calls back
            answered(id, null, error);
        }
    }

    private void answered(long id, RecordMetadata place, Exception error) {
        JSONObject sent = event("sent").put("id", id);
        if (error == null) {
            sent.put("outcome", "ok").put("broker", BROKER)
                .put("queue_id", place.partition()).put("queue_offset", place.offset());
        } else { // whatever it is: the record may be in the log all the same
            sent.put("outcome", "unknown").put("why", error.toString());
        }
        emit(sent);
        free.release();
    }

    // ------------------------------------------------------------------------------------------ a consumer

    /** One thread that polls and works. lanes: the incarnation of each partition that is ours. */
    private final class Worker implements ConsumerRebalanceListener {
        final Thread thread = new Thread(this::work, "worker");
        private final KafkaConsumer<String, String> consumer;
        private final Map<TopicPartition, Long> lanes = new HashMap<>();
        private final Map<String, Integer> tries = new HashMap<>();
        private final List<JSONObject> unfinished = new ArrayList<>();
        private final JSONArray rules;
        private final String client;
        private final String group;
        private final int batch;
        private final long suspendMs;
        private final long began = System.nanoTime();
        private volatile boolean atWork = true;

        Worker(JSONObject asked) {
            JSONObject config = asked.optJSONObject("config", new JSONObject());
            rules = asked.optJSONArray("listener", new JSONArray());
            client = asked.getString("client");
            group = asked.getString("group");
            batch = config.optInt("batch", 1);
            suspendMs = config.optLong("suspend_ms", 1000);
            consumer = new KafkaConsumer<>(settings(Map.of(
                "group.id", group, "client.id", client, "enable.auto.commit", "false",
                "auto.offset.reset", config.optString("consume_from").equals("last") ? "latest" : "earliest",
                "max.poll.records", Integer.toString(batch),
                "key.deserializer", StringDeserializer.class.getName(),
                "value.deserializer", StringDeserializer.class.getName())));
            List<String> topics = new ArrayList<>();
            asked.getJSONArray("topics").forEach(topic -> topics.add((String) topic));
            consumer.subscribe(topics, this);
        }

        void stop() throws InterruptedException {
            atWork = false;
            consumer.wakeup();
            thread.join();
        }

        private void work() {
            try {
                while (atWork) {
                    pollBegins();
                    ConsumerRecords<String, String> records = consumer.poll(POLL);
                    for (TopicPartition lane : records.partitions()) {
                        if (lanes.containsKey(lane)) {
                            call(lane, records.records(lane));
                        }
                    }
                }
            } catch (WakeupException stopped) {
                // stop() woke us; what was polled before has been worked on
            } catch (Throwable error) {
                error.printStackTrace();
                Runtime.getRuntime().halt(70); // a driver without its consumer has nothing to tell
            }
            pollBegins();
            consumer.close(CLOSE);
        }

        /** With automatic commits the calls since the last poll are over now. */
        private void pollBegins() {
            unfinished.forEach(Driver.this::emit);
            unfinished.clear();
        }

        private void call(TopicPartition lane, List<ConsumerRecord<String, String>> records) {
            JSONObject rule = decide(records);
            long number = numbers.incrementAndGet();
            JSONArray messages = new JSONArray();
            records.forEach(each -> messages.put(told(lane, each)));
            emit(event("delivered").put("call", number).put("messages", messages));
            pause(rule.optLong("duration_ms", 1));
            String outcome = rule.optString("outcome", "success");
            long waitMs = rule.optLong("suspend_ms", -1);
            boolean done = DONE.contains(outcome);
            JSONObject end = event("finished").put("call", number).put("outcome", outcome)
                .put("manual", false).put("suspend_ms", waitMs);
            if (done && automatic()) {
                unfinished.add(end);
                return;
            }
            emit(end);
            if (done) {
                commit(lane, records.get(records.size() - 1).offset() + 1);
            } else {
                pause(waitMs < 0 ? suspendMs : Math.max(waitMs, 10));
                consumer.seek(lane, records.get(0).offset());
            }
        }

        private void commit(TopicPartition lane, long value) {
            long number = numbers.incrementAndGet();
            emit(place(event("committing"), lane).put("commit", number).put("value", value)
                .put("incarnation", lanes.get(lane)));
            String outcome = "ok";
            long began = System.nanoTime();
            try {
                consumer.commitSync(Map.of(lane, new OffsetAndMetadata(value)), ANSWER);
            } catch (CommitFailedException error) {
                outcome = System.nanoTime() - began > triedOnceNanos() ? "unknown" : "refused";
            } catch (WakeupException error) {
                outcome = "unknown";
            } catch (RuntimeException error) {
                error.printStackTrace();
                outcome = "unknown";
            }
            emit(event("committed").put("commit", number).put("outcome", outcome));
        }

        /** A later refusal may be the answer to the library's own second try, where the first was stored. */
        private long triedOnceNanos() {
            return Long.parseLong(options.optString("retry.backoff.ms", "100")) * 1_000_000 / 2;
        }

        private JSONObject told(TopicPartition lane, ConsumerRecord<String, String> record) {
            String seq = header(record, "seq");
            return place(new JSONObject(), lane)
                .put("queue_offset", record.offset())
                .put("message_id", nullable(header(record, "id")))
                .put("reconsume_times", Math.max(0, tries.getOrDefault(mark(record), 0) - 1))
                .put("body", record.value())
                .put("key", nullable(record.key()))
                .put("key_seq", nullable(seq == null || seq.isEmpty() ? null : seq))
                .put("incarnation", lanes.get(lane));
        }

        /** The rule of the first record that has one; the last one that matches. */
        private JSONObject decide(List<ConsumerRecord<String, String>> records) {
            records.forEach(each -> tries.merge(mark(each), 1, Integer::sum));
            long nowMs = (System.nanoTime() - began) / 1_000_000;
            for (ConsumerRecord<String, String> record : records) {
                for (int at = rules.length() - 1; at >= 0; at--) {
                    if (fits(rules.getJSONObject(at), record, nowMs)) {
                        return rules.getJSONObject(at);
                    }
                }
            }
            return new JSONObject();
        }

        private boolean fits(JSONObject rule, ConsumerRecord<String, String> record, long nowMs) {
            int nth = tries.get(mark(record));
            String id = String.valueOf(header(record, "id"));
            String number = id.substring(id.lastIndexOf('m') + 1);
            return nth >= rule.optInt("delivery_min", 1)
                && nth <= rule.optInt("delivery_max", Integer.MAX_VALUE)
                && nowMs >= rule.optLong("from_ms", 0)
                && (!rule.has("number") || number.equals(rule.get("number").toString()))
                && is(rule, "client", client) && is(rule, "group", group)
                && is(rule, "topic", record.topic()) && is(rule, "key", record.key());
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            for (TopicPartition lane : partitions) {
                lanes.put(lane, numbers.incrementAndGet());
                emit(place(event("added"), lane).put("incarnation", lanes.get(lane)));
            }
            if (partitions.isEmpty()) {
                return;
            }
            Map<TopicPartition, Long> looks = new HashMap<>();
            for (TopicPartition lane : partitions) {
                looks.put(lane, numbers.incrementAndGet());
                emit(place(event("looking_up"), lane).put("look", looks.get(lane))
                    .put("incarnation", lanes.get(lane)));
            }
            Map<TopicPartition, OffsetAndMetadata> found = null;
            try {
                found = consumer.committed(new HashSet<>(partitions), ANSWER);
            } catch (RuntimeException error) {
                error.printStackTrace();
            }
            for (Map.Entry<TopicPartition, Long> look : looks.entrySet()) {
                OffsetAndMetadata stored = found == null ? null : found.get(look.getKey());
                emit(event("looked_up").put("look", look.getValue())
                    .put("outcome", found == null ? "unknown" : stored == null ? "refused" : "ok")
                    .put("value", stored == null ? -1 : stored.offset()));
            }
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            pollBegins();
            for (TopicPartition lane : partitions) {
                Long incarnation = lanes.remove(lane);
                if (incarnation != null) {
                    emit(place(event("dropped"), lane).put("incarnation", incarnation));
                }
            }
        }
    }

    // ------------------------------------------------------------------------------------------ small things

    private static String mark(ConsumerRecord<String, String> record) {
        return record.topic() + "/" + record.partition() + "/" + record.offset();
    }

    private static String header(ConsumerRecord<String, String> record, String name) {
        Header found = record.headers().lastHeader(name);
        return found == null ? null : new String(found.value(), StandardCharsets.UTF_8);
    }

    private static boolean is(JSONObject rule, String name, String value) {
        return rule.isNull(name) || rule.getString(name).equals(value);
    }

    private static Object nullable(String value) {
        return value == null ? JSONObject.NULL : value;
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private static JSONObject place(JSONObject line, TopicPartition lane) {
        return line.put("topic", lane.topic()).put("broker", BROKER).put("queue_id", lane.partition());
    }

    private static JSONObject reply(long id) {
        return new JSONObject().put("reply", id).put("ok", true);
    }

    private static JSONObject event(String name) {
        return new JSONObject().put("event", name);
    }

    private void refuse(Object id, String why) {
        emit(new JSONObject().put("reply", id).put("ok", false).put("error", String.valueOf(why)));
    }

    private void emit(JSONObject line) {
        synchronized (out) { // the clock is read under the lock, so that the lines ascend
            byte[] bytes = utf8(line.put("at_us", System.nanoTime() / 1000).toString() + "\n");
            out.write(bytes, 0, bytes.length);
            out.flush();
        }
    }

    /** The next line without its newline; null at the end. A longer line than the limit is read over and refused. */
    private static String readLine(InputStream in) throws IOException, Wrong {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        int length = 0;
        for (int next = in.read(); next != '\n'; next = in.read()) {
            if (next < 0) {
                return null; // a torn last line is no request
            }
            if (++length <= LINE_BYTES_MAX) {
                line.write(next);
            }
        }
        if (length > LINE_BYTES_MAX) {
            throw new Wrong("a line of " + length + " bytes; the limit is " + LINE_BYTES_MAX);
        }
        return line.toString(StandardCharsets.UTF_8);
    }

    /** What was asked for can't be done: the answer's error. */
    static final class Wrong extends Exception {
        private static final long serialVersionUID = 1L;

        Wrong(String why) {
            super(why);
        }
    }
}
