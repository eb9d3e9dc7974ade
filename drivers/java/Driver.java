/*
 * The driver protocol, version 1, over Apache RocketMQ's Java client: one process is one client of a plan.
 *
 * JSON lines come in on stdin and go out on stdout (specs/schemas/driver.v1.json). The harness asks: hello, start,
 * send, select, stop, and the verbs that hello names. What happens is told as events: delivered and finished (begin and end of a listener call), sent. Every
 * event carries the host's monotonic clock in microseconds, taken in the order in which the lines are written.
 *
 * Rules:
 * - the listener decides by the rules that came with `start`, it never asks;
 * - `delivered` is written and flushed before the listener's work, `finished` before the client learns the result:
 *   a process that is killed leaves what it began;
 * - when stdin ends, whoever started us is gone: we halt at once, without the client's shutdown;
 * - compiled against the jars of any version from 4.5 on; the client is used by its public API;
 * - which lanes the client works on is told by its own table of process queues (`added`, `dropped`), in whose place we
 *   put one that tells its changes. `added` comes before the lane is in the table, `dropped` once it has left it: what
 *   the client gives back on the way (its last commit, the unlock) goes before. A version without that table tells
 *   neither, and hello does not name them.
 */

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.AbstractSet;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.impl.consumer.ProcessQueue;
import org.apache.rocketmq.client.impl.consumer.RebalanceImpl;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.MessageQueueSelector;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

public final class Driver {
    static final int PROTOCOL = 1;
    static final int LINE_BYTES_MAX = 1 << 20;
    static final String UNIQ_KEY = "UNIQ_KEY";
    static final String SHARDING_KEY = "__SHARDINGKEY";
    static final String KEY_SEQ = "KEY_SEQ";

    private final PrintStream out;
    private final ExecutorService sends = Executors.newSingleThreadExecutor(); // one by one, in the order asked for
    private boolean greeted;
    private DefaultMQPushConsumer consumer;
    private DefaultMQProducer producer;

    private Driver(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] args) throws IOException {
        PrintStream out = System.out;
        System.setOut(System.err); // what a library prints must not stand between our lines
        new Driver(out).serve(new BufferedInputStream(System.in));
        Runtime.getRuntime().halt(0);
    }

    private void serve(InputStream in) throws IOException {
        while (true) {
            Object id = null;
            try {
                String line = readLine(in);
                if (line == null) {
                    return;
                }
                Map<String, Object> asked = Json.object(Json.parse(line), "the line");
                id = asked.get("id");
                if (!(id instanceof Long)) {
                    id = null;
                    throw new Wrong("a request needs an id, a whole number");
                }
                if (answer((Long) id, asked)) {
                    return;
                }
            } catch (Wrong error) {
                refuse(id, error.getMessage());
            } catch (Exception error) {
                refuse(id, error.toString());
            }
        }
    }

    /** One request. True when the driver is to end. */
    private boolean answer(long id, Map<String, Object> asked) throws Exception {
        String verb = text(asked, "verb");
        if (!greeted && !verb.equals("hello")) {
            throw new Wrong("the first request must be hello");
        }
        switch (verb) {
            case "hello":
                long version = number(asked, "version", -1);
                if (version != PROTOCOL) {
                    throw new Wrong("this driver speaks version " + PROTOCOL + ", not " + version);
                }
                greeted = true;
                Map<String, Object> hello = reply(id);
                hello.put("version", PROTOCOL);
                hello.put("driver", "java");
                hello.put("client", clientVersion());
                List<String> told = new ArrayList<>(List.of("delivered", "finished", "sent", "assigned"));
                if (table() != null) {
                    told.addAll(List.of("added", "dropped"));
                }
                hello.put("events", told);
                hello.put("verbs", List.of("send_batch", "send_delayed", "read", "query", "select"));
                emit(hello);
                return false;
            case "start":
                start(id, asked);
                return false;
            case "send":
            case "send_delayed":
                send(id, asked);
                return false;
            case "select":
                Map<String, Object> chosen = reply(id);
                chosen.put("queue_id", select(text(asked, "key"), (int) number(asked, "queues", 1)));
                emit(chosen);
                return false;
            case "send_batch":
                sendBatch(id, asked);
                return false;
            case "read":
                read(id, asked);
                return false;
            case "query":
                query(id, asked);
                return false;
            case "stop":
                stop();
                emit(reply(id));
                return true;
            default:
                throw new Wrong("unknown verb " + verb);
        }
    }

    private static String clientVersion() {
        return MQVersion.getVersionDesc(MQVersion.CURRENT_VERSION).replaceFirst("^V", "").replace('_', '.');
    }

    private void start(long id, Map<String, Object> asked) throws Exception {
        if (consumer != null || producer != null) {
            throw new Wrong("this process has started its client already");
        }
        String name = text(asked, "client");
        String role = text(asked, "role");
        Map<String, Object> config = Json.object(asked.getOrDefault("config", Map.of()), "config");
        if (role.equals("producer")) {
            DefaultMQProducer made = new DefaultMQProducer(text(asked, "group"));
            made.setNamesrvAddr(text(asked, "namesrv"));
            made.setInstanceName(name);
            made.setClientIP("127.0.0.1");
            made.setSendMsgTimeout((int) number(config, "send_timeout_ms", 3000));
            made.start();
            producer = made;
        } else if (role.equals("consumer")) {
            DefaultMQPushConsumer made = new DefaultMQPushConsumer(text(asked, "group"));
            made.setNamesrvAddr(text(asked, "namesrv"));
            made.setInstanceName(name);
            made.setClientIP("127.0.0.1");
            for (Object topic : Json.list(asked.get("topics"), "topics")) {
                made.subscribe((String) topic, (String) config.getOrDefault("subscription", "*"));
            }
            int threads = (int) number(config, "threads", 20);
            made.setConsumeThreadMax(Math.max(threads, 20));
            made.setConsumeThreadMin(threads);
            made.setMaxReconsumeTimes((int) number(config, "max_reconsume_times", -1));
            made.setSuspendCurrentQueueTimeMillis(number(config, "suspend_ms", 1000));
            made.setConsumeMessageBatchMaxSize((int) number(config, "batch", 1));
            made.setPullBatchSize((int) number(config, "pull_batch", 32));
            made.setPersistConsumerOffsetInterval((int) number(config, "persist_ms", 5000));
            made.setHeartbeatBrokerInterval((int) number(config, "heartbeat_ms", 30000));
            boolean last = "last".equals(config.get("consume_from"));
            made.setConsumeFromWhere(
                last ? ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET : ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            List<Rule> rules = new ArrayList<>();
            for (Object rule : Json.list(asked.getOrDefault("listener", List.of()), "listener")) {
                rules.add(new Rule(Json.object(rule, "a rule")));
            }
            Lanes lanes = new Lanes();
            lanes.watch(made);
            made.setAllocateMessageQueueStrategy(new Told(new AllocateMessageQueueAveragely()));
            Listener listener = new Listener(name, text(asked, "group"), rules, lanes);
            if ("concurrent".equals(config.get("mode"))) {
                made.registerMessageListener((MessageListenerConcurrently) listener::concurrently);
            } else {
                made.registerMessageListener((MessageListenerOrderly) listener::orderly);
            }
            if ("broadcasting".equals(config.get("message_model"))) {
                broadcast(made);
            }
            made.start();
            consumer = made;
        } else {
            throw new Wrong("a role is consumer or producer, not " + role);
        }
        Map<String, Object> started = reply(id);
        started.put("client_id", "127.0.0.1@" + name);
        emit(started);
    }

    /** By name: the package of the setter's argument is not the same in all versions. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void broadcast(DefaultMQPushConsumer consumer) throws ReflectiveOperationException {
        for (Method method : DefaultMQPushConsumer.class.getMethods()) {
            if (method.getName().equals("setMessageModel")) {
                method.invoke(consumer, Enum.valueOf((Class) method.getParameterTypes()[0], "BROADCASTING"));
            }
        }
    }

    private void stop() throws InterruptedException {
        sends.shutdown();
        sends.awaitTermination(30, TimeUnit.SECONDS);
        if (consumer != null) {
            consumer.shutdown();
        }
        if (producer != null) {
            producer.shutdown();
        }
    }

    /** Which of so many queues the client's hash selector chooses for a key; needs no server. */
    private static int select(String key, int count) {
        List<MessageQueue> queues = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            queues.add(new MessageQueue("orders", "b0", number));
        }
        return new SelectMessageQueueByHash().select(queues, null, key).getQueueId();
    }

    private void send(long id, Map<String, Object> asked) throws Wrong {
        if (producer == null) {
            throw new Wrong("send needs a client started as a producer");
        }
        String key = (String) asked.get("key");
        byte[] body = text(asked, "body").getBytes(StandardCharsets.UTF_8);
        Message message = new Message(text(asked, "topic"), (String) asked.get("tags"), key, body);
        MessageAccessor.putProperty(message, UNIQ_KEY, text(asked, "message"));
        if (key != null) {
            MessageAccessor.putProperty(message, SHARDING_KEY, key);
        }
        if (asked.get("key_seq") != null) {
            MessageAccessor.putProperty(message, KEY_SEQ, asked.get("key_seq").toString());
        }
        if (asked.get("delay_level") != null) {
            message.setDelayTimeLevel((int) number(asked, "delay_level", 0));
        }
        sends.execute(() -> sendNow(id, message, key));
    }

    /** Several messages in one request; the answer tells where the first one lies. */
    private void sendBatch(long id, Map<String, Object> asked) throws Wrong {
        if (producer == null) {
            throw new Wrong("send_batch needs a client started as a producer");
        }
        List<Message> messages = new ArrayList<>();
        for (Object each : Json.list(asked.get("messages"), "messages")) {
            Map<String, Object> one = Json.object(each, "a message");
            byte[] body = text(one, "body").getBytes(StandardCharsets.UTF_8);
            Message message = new Message(text(asked, "topic"), (String) asked.get("tags"), null, body);
            MessageAccessor.putProperty(message, UNIQ_KEY, text(one, "message"));
            messages.add(message);
        }
        sends.execute(() -> tellSent(id, List.of(), () -> producer.send(messages)));
    }

    /** Read a topic to its end by a pull consumer, queue by queue. */
    private void read(long id, Map<String, Object> asked) throws Exception {
        DefaultMQPullConsumer puller = new DefaultMQPullConsumer(text(asked, "group"));
        puller.setNamesrvAddr(text(asked, "namesrv"));
        puller.setInstanceName(text(asked, "client"));
        puller.setClientIP("127.0.0.1");
        puller.start();
        try {
            List<Object> found = new ArrayList<>();
            for (MessageQueue queue : puller.fetchSubscribeMessageQueues(text(asked, "topic"))) {
                long offset = puller.minOffset(queue);
                for (PullResult got = puller.pull(queue, "*", offset, 32); got.getPullStatus() == PullStatus.FOUND;
                        got = puller.pull(queue, "*", offset, 32)) {
                    for (MessageExt message : got.getMsgFoundList()) {
                        found.add(described(message, queue));
                    }
                    offset = got.getNextBeginOffset();
                }
            }
            Map<String, Object> answer = reply(id);
            answer.put("messages", found);
            emit(answer);
        } finally {
            puller.shutdown();
        }
    }

    /** Look messages up by their key. */
    private void query(long id, Map<String, Object> asked) throws Exception {
        if (producer == null) {
            throw new Wrong("query needs a client started as a producer");
        }
        List<Object> found = new ArrayList<>();
        String topic = text(asked, "topic");
        QueryResult result = producer.queryMessage(topic, text(asked, "key"), 64, 0, Long.MAX_VALUE);
        for (MessageExt message : result.getMessageList()) {
            found.add(described(message, new MessageQueue(topic, "", message.getQueueId())));
        }
        Map<String, Object> answer = reply(id);
        answer.put("messages", found);
        emit(answer);
    }

    private void sendNow(long id, Message message, String key) {
        List<Object> choices = new ArrayList<>();
        MessageQueueSelector byHash = (queues, each, of) -> {
            choices.addAll(named(queues));
            return new SelectMessageQueueByHash().select(queues, each, of);
        };
        tellSent(id, choices, () -> key == null ? producer.send(message) : producer.send(message, byHash, key));
    }

    private void tellSent(long id, List<Object> choices, Callable<SendResult> send) {
        Map<String, Object> sent = event("sent");
        sent.put("id", id);
        try {
            SendResult result = send.call();
            MessageQueue queue = result.getMessageQueue();
            sent.put("outcome", "ok");
            sent.put("status", result.getSendStatus().name());
            sent.put("broker", queue.getBrokerName());
            sent.put("queue_id", queue.getQueueId());
            sent.put("queue_offset", result.getQueueOffset());
        } catch (MQBrokerException error) {
            sent.put("outcome", "refused");
            sent.put("code", error.getResponseCode());
            sent.put("why", error.toString());
        } catch (Throwable error) { // without an answer of the broker it may have been stored or not
            sent.put("outcome", "unknown");
            sent.put("why", error.toString());
        }
        if (!choices.isEmpty()) {
            sent.put("choices", choices);
        }
        emit(sent);
    }

    /** Ends calls as the rules say; the last rule that matches wins, the first message with one decides. */
    private final class Listener {
        private final String client;
        private final String group;
        private final List<Rule> rules;
        private final Lanes lanes;
        private final long beganNanos = System.nanoTime();
        private final Map<String, Integer> deliveries = new HashMap<>();
        private long calls;

        Listener(String client, String group, List<Rule> rules, Lanes lanes) {
            this.client = client;
            this.group = group;
            this.rules = rules;
            this.lanes = lanes;
        }

        ConsumeOrderlyStatus orderly(List<MessageExt> messages, ConsumeOrderlyContext context) {
            long call = nextCall();
            Rule rule = work(call, messages, context.getMessageQueue());
            context.setAutoCommit(!rule.manual);
            context.setSuspendCurrentQueueTimeMillis(rule.suspendMs);
            tellEnd(call, rule, rule.manual);
            return status(rule);
        }

        ConsumeConcurrentlyStatus concurrently(List<MessageExt> messages, ConsumeConcurrentlyContext context) {
            long call = nextCall();
            Rule rule = work(call, messages, context.getMessageQueue());
            context.setDelayLevelWhenNextConsume((int) rule.delayLevel);
            tellEnd(call, rule, false);
            switch (rule.outcome) {
                case "success":
                case "commit":
                    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                case "threw":
                    throw new IllegalStateException("the plan says that this delivery throws");
                case "null":
                    return null;
                default:
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
        }

        private synchronized long nextCall() {
            return ++calls;
        }

        /** Tell what was delivered, and take as long as the rule says. */
        private Rule work(long call, List<MessageExt> messages, MessageQueue queue) {
            Rule rule = decide(messages);
            List<Object> listed = new ArrayList<>();
            for (MessageExt message : messages) {
                Map<String, Object> one = described(message, queue);
                Integer work = lanes.number(queue);
                if (work != null) {
                    one.put("incarnation", work);
                }
                listed.add(one);
            }
            Map<String, Object> delivered = event("delivered");
            delivered.put("call", call);
            delivered.put("messages", listed);
            emit(delivered);
            try {
                Thread.sleep(rule.durationMs); // how long the work takes is the plan's
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
            return rule;
        }

        private void tellEnd(long call, Rule rule, boolean manual) {
            Map<String, Object> finished = event("finished");
            finished.put("call", call);
            finished.put("outcome", rule.outcome);
            finished.put("manual", manual);
            finished.put("suspend_ms", rule.suspendMs);
            emit(finished);
        }

        @SuppressWarnings("deprecation") // COMMIT and ROLLBACK are what manual mode has
        private ConsumeOrderlyStatus status(Rule rule) {
            switch (rule.outcome) {
                case "success":
                    return ConsumeOrderlyStatus.SUCCESS;
                case "commit":
                    return ConsumeOrderlyStatus.COMMIT;
                case "rollback":
                    return ConsumeOrderlyStatus.ROLLBACK;
                case "suspend":
                    return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
                case "threw":
                    throw new IllegalStateException("the plan says that this delivery throws");
                default:
                    return null;
            }
        }

        private synchronized Rule decide(List<MessageExt> messages) {
            long atMs = (System.nanoTime() - beganNanos) / 1_000_000;
            Rule found = null;
            for (MessageExt message : messages) {
                int times = deliveries.merge(String.valueOf(message.getProperty(UNIQ_KEY)), 1, Integer::sum);
                for (int place = rules.size() - 1; found == null && place >= 0; place--) {
                    if (rules.get(place).matches(atMs, client, group, message, times)) {
                        found = rules.get(place);
                    }
                }
            }
            return found == null ? Rule.USUAL : found;
        }
    }

    /** The field that holds a client's own table; null in a version that has none of the kind. */
    private static Field table() {
        try {
            Field field = RebalanceImpl.class.getDeclaredField("processQueueTable");
            return field.getType().isAssignableFrom(Lanes.class) ? field : null;
        } catch (NoSuchFieldException error) {
            return null;
        }
    }

    /** The client's process queues, numbered from 1 in the order in which it made them; it tells what comes and goes. */
    private final class Lanes extends ConcurrentHashMap<MessageQueue, ProcessQueue> {
        private static final long serialVersionUID = 1L;
        private final Map<MessageQueue, Integer> numbers = new ConcurrentHashMap<>(); // the latest of each lane
        private int made;

        /** Stand in for the table of a client that has not started yet. */
        void watch(DefaultMQPushConsumer consumer) throws ReflectiveOperationException {
            Field field = table();
            if (field != null) {
                field.setAccessible(true);
                field.set(consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl(), this);
            }
        }

        /** The number of the work on a lane; null where the version does not show it. */
        Integer number(MessageQueue queue) {
            return numbers.get(queue);
        }

        @Override
        public ProcessQueue putIfAbsent(MessageQueue queue, ProcessQueue work) {
            added(queue);
            return super.putIfAbsent(queue, work);
        }

        @Override
        public ProcessQueue put(MessageQueue queue, ProcessQueue work) {
            added(queue);
            return super.put(queue, work);
        }

        private synchronized void added(MessageQueue queue) {
            if (!containsKey(queue)) { // only the client's one rebalance thread adds
                numbers.put(queue, ++made);
                tell("added", queue);
            }
        }

        @Override
        public ProcessQueue remove(Object queue) {
            ProcessQueue gone = super.remove(queue);
            if (gone != null) {
                tell("dropped", (MessageQueue) queue);
            }
            return gone;
        }

        @Override
        public void clear() {
            for (MessageQueue queue : new ArrayList<>(super.keySet())) {
                remove(queue);
            }
        }

        /** The same entries, whose iterator tells what it takes away. */
        @Override
        public Set<Map.Entry<MessageQueue, ProcessQueue>> entrySet() {
            Set<Map.Entry<MessageQueue, ProcessQueue>> entries = super.entrySet();
            return new AbstractSet<>() {
                @Override
                public int size() {
                    return entries.size();
                }

                @Override
                public Iterator<Map.Entry<MessageQueue, ProcessQueue>> iterator() {
                    Iterator<Map.Entry<MessageQueue, ProcessQueue>> each = entries.iterator();
                    return new Iterator<>() {
                        private Map.Entry<MessageQueue, ProcessQueue> last;

                        @Override
                        public boolean hasNext() {
                            return each.hasNext();
                        }

                        @Override
                        public Map.Entry<MessageQueue, ProcessQueue> next() {
                            last = each.next();
                            return last;
                        }

                        @Override
                        public void remove() {
                            Lanes.this.remove(last.getKey());
                        }
                    };
                }
            };
        }

        private void tell(String what, MessageQueue queue) {
            Map<String, Object> told = event(what);
            told.put("topic", queue.getTopic());
            told.put("broker", queue.getBrokerName());
            told.put("queue_id", queue.getQueueId());
            told.put("incarnation", numbers.get(queue));
            emit(told);
        }
    }

    /** A strategy that tells what came of it, each time that it is another share or another view. */
    private final class Told implements AllocateMessageQueueStrategy {
        private final AllocateMessageQueueStrategy strategy;
        private final Map<String, String> last = new HashMap<>();

        Told(AllocateMessageQueueStrategy strategy) {
            this.strategy = strategy;
        }

        @Override
        public String getName() {
            return strategy.getName();
        }

        @Override
        public List<MessageQueue> allocate(String group, String me, List<MessageQueue> all, List<String> members) {
            List<MessageQueue> share = strategy.allocate(group, me, all, members);
            if (!all.isEmpty()) {
                Map<String, Object> told = event("assigned");
                told.put("topic", all.get(0).getTopic());
                told.put("members", new ArrayList<Object>(members));
                told.put("queues", named(all));
                told.put("share", named(share == null ? List.of() : share));
                String now = Json.write(told);
                if (!now.equals(last.put(all.get(0).getTopic(), now))) {
                    emit(told);
                }
            }
            return share;
        }
    }

    private static List<Object> named(List<MessageQueue> queues) {
        List<Object> names = new ArrayList<>();
        for (MessageQueue queue : queues) {
            names.add(queue.getBrokerName() + "/" + queue.getQueueId());
        }
        return names;
    }

    private static Map<String, Object> described(MessageExt message, MessageQueue queue) {
        Map<String, Object> made = new LinkedHashMap<>();
        made.put("topic", queue.getTopic());
        made.put("broker", queue.getBrokerName());
        made.put("queue_id", queue.getQueueId());
        made.put("queue_offset", message.getQueueOffset());
        made.put("message_id", message.getProperty(UNIQ_KEY));
        made.put("key", message.getProperty(SHARDING_KEY));
        made.put("key_seq", message.getProperty(KEY_SEQ));
        made.put("tags", message.getTags());
        made.put("reconsume_times", message.getReconsumeTimes());
        made.put("body", new String(message.getBody(), StandardCharsets.UTF_8));
        return made;
    }

    /** A listener rule of a plan: what is null matches everything. */
    private static final class Rule {
        static final Rule USUAL = usual();
        final String outcome;
        final long suspendMs;
        final long durationMs;
        final boolean manual;
        final long fromMs;
        final String group;
        final String client;
        final String topic;
        final String key;
        final long number;
        final long deliveryMin;
        final long deliveryMax;
        final long delayLevel;

        Rule(Map<String, Object> rule) throws Wrong {
            outcome = (String) rule.getOrDefault("outcome", "success");
            if (!List.of("success", "suspend", "commit", "rollback", "null", "threw").contains(outcome)) {
                throw new Wrong("a listener can't end with " + outcome);
            }
            suspendMs = Driver.number(rule, "suspend_ms", -1);
            durationMs = Driver.number(rule, "duration_ms", 0);
            manual = Boolean.TRUE.equals(rule.get("manual"));
            fromMs = Driver.number(rule, "from_ms", 0);
            group = (String) rule.get("group");
            client = (String) rule.get("client");
            topic = (String) rule.get("topic");
            key = (String) rule.get("key");
            number = Driver.number(rule, "number", -1);
            deliveryMin = Driver.number(rule, "delivery_min", 1);
            deliveryMax = Driver.number(rule, "delivery_max", Long.MAX_VALUE);
            delayLevel = Driver.number(rule, "delay_level", 0);
        }

        private static Rule usual() {
            try {
                return new Rule(Map.of());
            } catch (Wrong impossible) {
                throw new IllegalStateException(impossible);
            }
        }

        boolean matches(long atMs, String client, String group, MessageExt message, int times) {
            return atMs >= fromMs
                && times >= deliveryMin
                && times <= deliveryMax
                && (this.client == null || this.client.equals(client))
                && (this.group == null || this.group.equals(group))
                && (topic == null || topic.equals(message.getTopic()))
                && (key == null || key.equals(message.getProperty(SHARDING_KEY)))
                && (number < 0 || number == numberOf(message.getProperty(UNIQ_KEY)));
        }

        /** The message's number in the plan: m17 or run-m17 is 17, else 0. */
        private static long numberOf(String id) {
            String name = id == null ? "" : id.substring(id.lastIndexOf('-') + 1);
            return name.matches("m\\d{1,15}") ? Long.parseLong(name.substring(1)) : 0;
        }
    }

    // ------------------------------------------------------------------------------------------ lines

    private static Map<String, Object> reply(long id) {
        Map<String, Object> made = new LinkedHashMap<>();
        made.put("reply", id);
        made.put("ok", true);
        return made;
    }

    private static Map<String, Object> event(String name) {
        Map<String, Object> made = new LinkedHashMap<>();
        made.put("event", name);
        return made;
    }

    private void refuse(Object id, String why) {
        Map<String, Object> made = new LinkedHashMap<>();
        made.put("reply", id);
        made.put("ok", false);
        made.put("error", why);
        emit(made);
    }

    private void emit(Map<String, Object> line) {
        synchronized (out) { // the clock is read under the lock, so that the lines ascend
            line.put("at_us", System.nanoTime() / 1000);
            byte[] bytes = (Json.write(line) + "\n").getBytes(StandardCharsets.UTF_8);
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
        return new String(line.toByteArray(), StandardCharsets.UTF_8);
    }

    static String text(Map<String, Object> from, String name) throws Wrong {
        Object value = from.get(name);
        if (!(value instanceof String)) {
            throw new Wrong("the field " + name + " must be text");
        }
        return (String) value;
    }

    static long number(Map<String, Object> from, String name, long usual) throws Wrong {
        Object value = from.get(name);
        if (value == null) {
            return usual;
        }
        if (!(value instanceof Long)) {
            throw new Wrong("the field " + name + " must be a whole number");
        }
        return (Long) value;
    }

    /** What was asked for can't be done: the answer's error. */
    static final class Wrong extends Exception {
        private static final long serialVersionUID = 1L;

        Wrong(String why) {
            super(why);
        }
    }

    /** Reads and writes JSON: the client's versions bring different libraries, so none is used. */
    static final class Json {
        private static final int DEPTH_MAX = 32;
        private final String text;
        private int at;

        private Json(String text) {
            this.text = text;
        }

        static Object parse(String text) throws Wrong {
            Json json = new Json(text);
            Object value = json.value(0);
            json.space();
            if (json.at != text.length()) {
                throw json.wrong("more after the value");
            }
            return value;
        }

        @SuppressWarnings("unchecked")
        static Map<String, Object> object(Object value, String what) throws Wrong {
            if (!(value instanceof Map)) {
                throw new Wrong(what + " must be an object");
            }
            return (Map<String, Object>) value;
        }

        @SuppressWarnings("unchecked")
        static List<Object> list(Object value, String what) throws Wrong {
            if (!(value instanceof List)) {
                throw new Wrong(what + " must be a list");
            }
            return (List<Object>) value;
        }

        private Wrong wrong(String why) {
            return new Wrong("not JSON at character " + at + ": " + why);
        }

        private void space() {
            while (at < text.length() && " \t\r".indexOf(text.charAt(at)) >= 0) {
                at++;
            }
        }

        private char next() throws Wrong {
            if (at >= text.length()) {
                throw wrong("it ends too soon");
            }
            return text.charAt(at++);
        }

        private boolean takes(char wanted) {
            space();
            if (at < text.length() && text.charAt(at) == wanted) {
                at++;
                return true;
            }
            return false;
        }

        private Object value(int depth) throws Wrong {
            if (depth > DEPTH_MAX) {
                throw wrong("nested too deeply");
            }
            if (takes('{')) {
                Map<String, Object> made = new LinkedHashMap<>();
                if (takes('}')) {
                    return made;
                }
                do {
                    if (!takes('"')) {
                        throw wrong("a name in quotes is missing");
                    }
                    String name = string();
                    if (!takes(':')) {
                        throw wrong("a colon is missing");
                    }
                    made.put(name, value(depth + 1));
                } while (takes(','));
                if (!takes('}')) {
                    throw wrong("a closing brace is missing");
                }
                return made;
            }
            if (takes('[')) {
                List<Object> made = new ArrayList<>();
                if (takes(']')) {
                    return made;
                }
                do {
                    made.add(value(depth + 1));
                } while (takes(','));
                if (!takes(']')) {
                    throw wrong("a closing bracket is missing");
                }
                return made;
            }
            if (takes('"')) {
                return string();
            }
            int begin = at;
            while (at < text.length() && ",]} \t\r".indexOf(text.charAt(at)) < 0) {
                at++;
            }
            String word = text.substring(begin, at);
            switch (word) {
                case "true":
                    return true;
                case "false":
                    return false;
                case "null":
                    return null;
                default:
                    if (word.matches("-?(0|[1-9]\\d{0,17})")) {
                        return Long.parseLong(word);
                    }
                    throw wrong("neither a whole number nor a known word");
            }
        }

        private String string() throws Wrong {
            StringBuilder made = new StringBuilder();
            for (char each = next(); each != '"'; each = next()) {
                made.append(each == '\\' ? escaped() : each);
            }
            return made.toString();
        }

        private char escaped() throws Wrong {
            char each = next();
            int place = "\"\\/bfnrt".indexOf(each);
            if (place >= 0) {
                return "\"\\/\b\f\n\r\t".charAt(place);
            }
            if (each != 'u' || at + 4 > text.length() || !text.substring(at, at + 4).matches("[0-9a-fA-F]{4}")) {
                throw wrong("an unknown escape");
            }
            at += 4;
            return (char) Integer.parseInt(text.substring(at - 4, at), 16);
        }

        static String write(Object value) {
            StringBuilder made = new StringBuilder();
            write(value, made);
            return made.toString();
        }

        private static void write(Object value, StringBuilder made) {
            if (value instanceof Map) {
                String between = "{";
                for (Map.Entry<?, ?> each : ((Map<?, ?>) value).entrySet()) {
                    made.append(between);
                    quote((String) each.getKey(), made);
                    made.append(':');
                    write(each.getValue(), made);
                    between = ",";
                }
                made.append(between.equals("{") ? "{}" : "}");
            } else if (value instanceof List) {
                String between = "[";
                for (Object each : (List<?>) value) {
                    made.append(between);
                    write(each, made);
                    between = ",";
                }
                made.append(between.equals("[") ? "[]" : "]");
            } else if (value instanceof String) {
                quote((String) value, made);
            } else {
                made.append(value);
            }
        }

        private static void quote(String text, StringBuilder made) {
            made.append('"');
            for (char each : text.toCharArray()) {
                if (each == '"' || each == '\\') {
                    made.append('\\').append(each);
                } else if (each < 0x20 || each > 0x7e) {
                    made.append(String.format("\\u%04x", (int) each));
                } else {
                    made.append(each);
                }
            }
            made.append('"');
        }
    }
}
