// The driver protocol, version 1, over Apache RocketMQ's Go client v2: one process is one client of a plan.
//
// JSON lines come in on stdin and go out on stdout (specs/schemas/driver.v2.json). The harness asks: hello, start, send
// and stop, and the verbs that hello names. What happens is told as events: delivered and finished (begin and end of a
// call of the listener), sent, assigned (the share of the lanes that the client computed), added and dropped.
//
// Rules:
//   - the listener decides by the rules that came with `start`, it never asks;
//   - `delivered` is written before the listener's work, `finished` before the client learns the result: a process that
//     is killed leaves what it began;
//   - when stdin ends, whoever started us is gone: we exit at once, without the client's shutdown;
//   - the client is used by its public API. It has one mode of commits for all calls: where a rule of the plan commits by
//     itself, the consumer does not commit automatically, and each `finished` says so;
//   - a listener of Go ends with a result and an error. `threw` is (0, error), and 0 is the client's own ConsumeSuccess;
//     `null`, which Go does not know, is ConsumeRetryLater: the other way in which its listener says that it failed;
//   - which lanes the client works on is told by its own table of process queues (conformance/parts/rocketmq_go.py).
//     `added` comes before the lane is in the table, `dropped` once it has left it. A client that stops leaves its lanes
//     in the table: they are dropped when its shutdown is over.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const (
	protocol       = 1
	lineBytesMax   = 1 << 20
	module         = "github.com/apache/rocketmq-client-go/v2"
	clientIP       = "127.0.0.1"
	uniqKey        = "UNIQ_KEY"
	shardingKey    = "__SHARDINGKEY" // the protocol's; this client's own is called otherwise, and gets the key too
	keySeq         = "KEY_SEQ"
	clockMonotonic = 1
)

type line map[string]any

// What was asked for can't be done: the answer's error.
type wrong string

func (why wrong) Error() string { return string(why) }

// ---------------------------------------------------------------------------------------------- lines

var (
	out     = os.Stdout
	outLock sync.Mutex
)

// The host's monotonic clock in microseconds; that of Go's own times begins with the process.
func nowUs() int64 {
	var now syscall.Timespec
	if _, _, failed := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0); failed != 0 {
		panic(failed)
	}
	return now.Nano() / 1000
}

func emit(told line) {
	outLock.Lock() // the clock is read under the lock, so that the lines ascend
	defer outLock.Unlock()
	told["at_us"] = nowUs()
	written, err := json.Marshal(told)
	if err != nil {
		panic(err)
	}
	_, _ = out.Write(append(written, '\n'))
}

func reply(id int64, more line) {
	answer := line{"reply": id, "ok": true}
	for name, value := range more {
		answer[name] = value
	}
	emit(answer)
}

func refuse(id any, why error) {
	emit(line{"reply": id, "ok": false, "error": why.Error()})
}

// The next line without its newline. A longer one than the limit is read over and refused; a torn last line is none.
func readLine(in *bufio.Reader) ([]byte, error) {
	var read []byte
	tooLong := 0
	for {
		part, err := in.ReadSlice('\n')
		if len(read)+len(part) > lineBytesMax+1 {
			tooLong += len(read) + len(part)
			read = nil
		} else {
			read = append(read, part...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			return nil, io.EOF
		}
		if tooLong > 0 {
			return nil, wrong(fmt.Sprintf("a line of %d bytes; the limit is %d", tooLong+len(read)-1, lineBytesMax))
		}
		return bytes.TrimSuffix(read, []byte("\n")), nil
	}
}

func parse(text []byte) (line, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var asked line
	if err := decoder.Decode(&asked); err != nil {
		return nil, wrong("not JSON: " + err.Error())
	}
	if decoder.More() || asked == nil {
		return nil, wrong("a line is one object")
	}
	return asked, nil
}

func (from line) text(name string) (string, error) {
	if value, ok := from[name].(string); ok {
		return value, nil
	}
	return "", wrong("the field " + name + " must be text")
}

func (from line) optional(name string) string {
	value, _ := from[name].(string)
	return value
}

func (from line) number(name string, usual int64) (int64, error) {
	value, there := from[name]
	if !there || value == nil {
		return usual, nil
	}
	if number, ok := value.(json.Number); ok {
		if found, err := number.Int64(); err == nil {
			return found, nil
		}
	}
	return 0, wrong("the field " + name + " must be a whole number")
}

func (from line) list(name string) ([]any, error) {
	value, there := from[name]
	if !there || value == nil {
		return nil, nil
	}
	if list, ok := value.([]any); ok {
		return list, nil
	}
	return nil, wrong(name + " must be a list")
}

func (from line) object(name string) (line, error) {
	value, there := from[name]
	if !there || value == nil {
		return line{}, nil
	}
	return object(value, name)
}

func object(value any, what string) (line, error) {
	if found, ok := value.(map[string]any); ok {
		return found, nil
	}
	return nil, wrong(what + " must be an object")
}

// ---------------------------------------------------------------------------------------------- the listener

// A listener rule of a plan: what is missing matches everything.
type rule struct {
	outcome                                              string
	suspendMs, durationMs, fromMs, number, atLeast, most int64
	manual                                               bool
	group, client, topic, key                            string
}

var usual = rule{outcome: "success", suspendMs: -1}

func readRule(told line) (rule, error) {
	read := rule{outcome: "success"}
	if outcome := told.optional("outcome"); outcome != "" {
		read.outcome = outcome
	}
	switch read.outcome {
	case "success", "suspend", "commit", "rollback", "null", "threw":
	default:
		return read, wrong("a listener can't end with " + read.outcome)
	}
	for _, each := range []struct {
		name  string
		usual int64
		into  *int64
	}{
		{"suspend_ms", -1, &read.suspendMs},
		{"duration_ms", 0, &read.durationMs},
		{"from_ms", 0, &read.fromMs},
		{"number", -1, &read.number},
		{"delivery_min", 1, &read.atLeast},
		{"delivery_max", 1 << 62, &read.most},
	} {
		value, err := told.number(each.name, each.usual)
		if err != nil {
			return read, err
		}
		*each.into = value
	}
	read.manual, _ = told["manual"].(bool)
	read.group, read.client = told.optional("group"), told.optional("client")
	read.topic, read.key = told.optional("topic"), told.optional("key")
	return read, nil
}

func fits(wanted, value string) bool { return wanted == "" || wanted == value }

func (r rule) matches(l *listener, message *primitive.MessageExt, times int64) bool {
	return time.Since(l.began).Milliseconds() >= r.fromMs &&
		times >= r.atLeast && times <= r.most &&
		fits(r.client, l.client) && fits(r.group, l.group) && fits(r.topic, message.Topic) &&
		fits(r.key, message.GetProperty(shardingKey)) &&
		(r.number < 0 || r.number == numberOf(message.GetProperty(uniqKey)))
}

// The message's number in the plan: m17 or run-m17 is 17, else 0.
func numberOf(id string) int64 {
	name := id[strings.LastIndex(id, "-")+1:]
	if !strings.HasPrefix(name, "m") {
		return 0
	}
	number, err := strconv.ParseInt(name[1:], 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// Ends calls as the rules say; the last rule that matches wins, the first message with one decides.
type listener struct {
	client, group string
	rules         []rule
	manual        bool
	began         time.Time
	lock          sync.Mutex
	calls         int64
	deliveries    map[string]int64
	lanes         *lanes
}

func newListener(client, group string, told []any, works *lanes) (*listener, error) {
	made := &listener{client: client, group: group, began: time.Now(), deliveries: map[string]int64{}, lanes: works}
	for _, each := range told {
		found, err := object(each, "a rule")
		if err != nil {
			return nil, err
		}
		read, err := readRule(found)
		if err != nil {
			return nil, err
		}
		made.rules = append(made.rules, read)
		made.manual = made.manual || read.manual
	}
	return made, nil
}

func (l *listener) orderly(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	told, there := primitive.GetOrderlyCtx(ctx)
	if there && messages[0].Queue.BrokerName == "" { // before 2.1.2 a message does not know its queue
		for _, message := range messages {
			message.Queue = &told.MQ
		}
	}
	call, chosen, listed := l.begin(messages)
	emit(line{"event": "delivered", "call": call, "messages": listed})
	time.Sleep(time.Duration(chosen.durationMs) * time.Millisecond) // how long the work takes is the plan's
	if chosen.suspendMs >= 0 && there {
		told.SuspendCurrentQueueTimeMillis = int(chosen.suspendMs)
	}
	emit(line{
		"event": "finished", "call": call, "outcome": chosen.outcome, "manual": l.manual, "suspend_ms": chosen.suspendMs,
	})
	switch chosen.outcome {
	case "success":
		return consumer.ConsumeSuccess, nil
	case "commit":
		return consumer.Commit, nil
	case "rollback":
		return consumer.Rollback, nil
	case "suspend":
		return consumer.SuspendCurrentQueueAMoment, nil
	case "null":
		return consumer.ConsumeRetryLater, nil
	default:
		return 0, errors.New("the plan says that this delivery fails with an error")
	}
}

// The call's number, how it is to end, and its messages as they are told.
func (l *listener) begin(messages []*primitive.MessageExt) (int64, rule, []line) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.calls++
	chosen, found := usual, false
	listed := make([]line, 0, len(messages))
	for _, message := range messages {
		id := message.GetProperty(uniqKey)
		l.deliveries[id]++
		for place := len(l.rules) - 1; !found && place >= 0; place-- {
			if l.rules[place].matches(l, message, l.deliveries[id]) {
				chosen, found = l.rules[place], true
			}
		}
		listed = append(listed, described(message, l.lanes.number(message.Queue)))
	}
	return l.calls, chosen, listed
}

func described(message *primitive.MessageExt, work int) line {
	queue := message.Queue
	return line{
		"topic": queue.Topic, "broker": queue.BrokerName, "queue_id": queue.QueueId, "queue_offset": message.QueueOffset,
		"message_id": property(message, uniqKey), "key": property(message, shardingKey),
		"key_seq": property(message, keySeq), "tags": property(message, primitive.PropertyTags),
		"reconsume_times": message.ReconsumeTimes, "body": string(message.Body), "incarnation": work,
	}
}

func property(message *primitive.MessageExt, name string) any {
	if value := message.GetProperty(name); value != "" {
		return value
	}
	return nil
}

// ---------------------------------------------------------------------------------------------- the lanes

// The client's works on lanes, numbered from 1 in the order in which it began them.
type lanes struct {
	lock   sync.Mutex
	works  map[*primitive.MessageQueue]int // a work's messages all point to this queue, and those of no other work do
	latest map[primitive.MessageQueue]int  // of each lane that was ever in the table
	there  map[primitive.MessageQueue]bool // is it still?
}

func newLanes() *lanes {
	return &lanes{
		works:  map[*primitive.MessageQueue]int{},
		latest: map[primitive.MessageQueue]int{},
		there:  map[primitive.MessageQueue]bool{},
	}
}

func (l *lanes) changed(queue *primitive.MessageQueue, added bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if added {
		l.works[queue] = len(l.works) + 1
		l.latest[*queue], l.there[*queue] = l.works[queue], true
	}
	l.tell(*queue, added)
}

func (l *lanes) tell(queue primitive.MessageQueue, added bool) {
	told := line{
		"event": "added", "topic": queue.Topic, "broker": queue.BrokerName, "queue_id": queue.QueueId,
		"incarnation": l.latest[queue],
	}
	if !added {
		told["event"] = "dropped"
		delete(l.there, queue)
	}
	emit(told)
}

func (l *lanes) number(queue *primitive.MessageQueue) int {
	l.lock.Lock()
	defer l.lock.Unlock()
	if work, known := l.works[queue]; known {
		return work
	}
	return l.latest[*queue] // before 2.1.2: that of the lane
}

func (l *lanes) left() {
	l.lock.Lock()
	defer l.lock.Unlock()
	for queue := range l.there {
		l.tell(queue, false)
	}
}

// ---------------------------------------------------------------------------------------------- the client

type driver struct {
	greeted  bool
	lanes    *lanes
	consumer rocketmq.PushConsumer
	producer rocketmq.Producer
	sends    chan func()
	sent     sync.WaitGroup
}

// An address that all hosts have, so that a client's id is known before it starts. There is no option for it.
func withClientIP[Option any](named Option) Option {
	made := reflect.MakeFunc(reflect.TypeOf(named), func(options []reflect.Value) []reflect.Value {
		options[0].Elem().FieldByName("ClientIP").SetString(clientIP)
		return nil
	})
	return made.Interface().(Option)
}

func (d *driver) start(id int64, asked line) error {
	if d.consumer != nil || d.producer != nil {
		return wrong("this process has started its client already")
	}
	fields := map[string]string{}
	for _, name := range []string{"role", "client", "group", "namesrv"} {
		value, err := asked.text(name)
		if err != nil {
			return err
		}
		fields[name] = value
	}
	var err error
	switch fields["role"] {
	case "producer":
		err = d.produce(fields)
	case "consumer":
		err = d.consume(fields, asked)
	default:
		err = wrong("a role is consumer or producer, not " + fields["role"])
	}
	if err == nil {
		reply(id, line{"client_id": clientIP + "@" + fields["client"]})
	}
	return err
}

func (d *driver) produce(fields map[string]string) error {
	made, err := rocketmq.NewProducer(
		producer.WithGroupName(fields["group"]),
		producer.WithNsResolver(primitive.NewPassthroughResolver([]string{fields["namesrv"]})),
		producer.WithInstanceName(fields["client"]),
		withClientIP(producer.WithInstanceName("")),
		producer.WithQueueSelector(producer.NewHashQueueSelector()),
	)
	if err != nil {
		return err
	}
	if err = made.Start(); err != nil {
		return err
	}
	d.producer, d.sends = made, make(chan func(), 1<<16)
	go func() { // one by one, in the order asked for
		for send := range d.sends {
			send()
			d.sent.Done()
		}
	}()
	return nil
}

func (d *driver) consume(fields map[string]string, asked line) error {
	config, err := asked.object("config")
	if err != nil {
		return err
	}
	if mode := config.optional("mode"); mode != "" && mode != "orderly" {
		return wrong("this driver consumes orderly, and not " + mode)
	}
	if model := config.optional("message_model"); model != "" && model != "clustering" {
		return wrong("this driver's groups are clustering, and not " + model)
	}
	told, err := asked.list("listener")
	if err != nil {
		return err
	}
	listens, err := newListener(fields["client"], fields["group"], told, d.lanes)
	if err != nil {
		return err
	}
	numbers := map[string]int64{}
	for name, usual := range map[string]int64{
		"max_reconsume_times": -1, "suspend_ms": 1000, "batch": 1, "pull_batch": 32,
	} {
		if numbers[name], err = config.number(name, usual); err != nil {
			return err
		}
	}
	from := consumer.ConsumeFromFirstOffset
	if config.optional("consume_from") == "last" {
		from = consumer.ConsumeFromLastOffset
	}
	options := []consumer.Option{
		consumer.WithGroupName(fields["group"]),
		consumer.WithNsResolver(primitive.NewPassthroughResolver([]string{fields["namesrv"]})),
		consumer.WithInstance(fields["client"]),
		withClientIP(consumer.WithInstance("")),
		consumer.WithConsumerModel(consumer.Clustering),
		consumer.WithConsumerOrder(true),
		consumer.WithConsumeFromWhere(from),
		consumer.WithAutoCommit(!listens.manual),
		consumer.WithMaxReconsumeTimes(int32(numbers["max_reconsume_times"])),
		consumer.WithSuspendCurrentQueueTimeMillis(time.Duration(numbers["suspend_ms"]) * time.Millisecond),
		consumer.WithConsumeMessageBatchMaxSize(int(numbers["batch"])),
		consumer.WithPullBatchSize(int32(numbers["pull_batch"])),
		consumer.WithStrategy(tellingShares()),
	}
	if every, set := milliseconds("INORDER_LOCK_INTERVAL_MS"); set {
		options = append(options, consumer.WithRebalanceLockInterval(every))
	}
	made, err := rocketmq.NewPushConsumer(options...)
	if err != nil {
		return err
	}
	topics, err := asked.list("topics")
	if err != nil {
		return err
	}
	filter := consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}
	if subscription := config.optional("subscription"); subscription != "" {
		filter.Expression = subscription
	}
	for _, topic := range topics {
		name, isText := topic.(string)
		if !isText {
			return wrong("a topic must be text")
		}
		if err = made.Subscribe(name, filter, listens.orderly); err != nil {
			return err
		}
	}
	if err = made.Start(); err != nil {
		return err
	}
	d.consumer = made
	return nil
}

func milliseconds(name string) (time.Duration, bool) {
	value, err := strconv.ParseInt(os.Getenv(name), 10, 64)
	return time.Duration(value) * time.Millisecond, err == nil
}

// The client's own strategy, with what it computed told when it differs from the last time.
func tellingShares() consumer.AllocateStrategy {
	last := map[string]string{}
	var lock sync.Mutex
	return func(group, client string, queues []*primitive.MessageQueue, members []string) []*primitive.MessageQueue {
		share := consumer.AllocateByAveragely(group, client, queues, members)
		if len(queues) == 0 {
			return share
		}
		lock.Lock()
		defer lock.Unlock()
		topic := queues[0].Topic
		now := fmt.Sprint(members, names(queues), names(share))
		if last[topic] != now {
			last[topic] = now
			emit(line{
				"event": "assigned", "topic": topic, "members": members, "queues": names(queues), "share": names(share),
			})
		}
		return share
	}
}

func names(queues []*primitive.MessageQueue) []string {
	found := make([]string, 0, len(queues))
	for _, queue := range queues {
		found = append(found, queue.BrokerName+"/"+strconv.Itoa(queue.QueueId))
	}
	return found
}

func (d *driver) send(id int64, asked line) error {
	told := []any{map[string]any(asked)}
	if batch, there := asked["messages"].([]any); there {
		told = batch
	}
	if d.producer == nil {
		return wrong("a send needs a client started as a producer")
	}
	topic, err := asked.text("topic")
	if err != nil {
		return err
	}
	level, err := asked.number("delay_level", 0)
	if err != nil {
		return err
	}
	seq, err := asked.number("key_seq", -1)
	if err != nil {
		return err
	}
	var messages []*primitive.Message
	for _, each := range told {
		one, err := object(each, "a message")
		if err != nil {
			return err
		}
		name, err := one.text("message")
		if err != nil {
			return err
		}
		body, err := one.text("body")
		if err != nil {
			return err
		}
		message := primitive.NewMessage(topic, []byte(body))
		message.WithProperty(uniqKey, name)
		message.WithTag(asked.optional("tags"))
		if key := asked.optional("key"); key != "" {
			message.WithShardingKey(key)
			message.WithKeys([]string{key})
			message.WithProperty(shardingKey, key)
		}
		if seq >= 0 {
			message.WithProperty(keySeq, strconv.FormatInt(seq, 10))
		}
		if level > 0 {
			message.WithDelayTimeLevel(int(level))
		}
		messages = append(messages, message)
	}
	d.sent.Add(1)
	d.sends <- func() { d.sendNow(id, messages) }
	return nil
}

// The client makes one error of a broker's refusal and of anything else; only the text of the first has a code.
var refusedBy = regexp.MustCompile(`^CODE: (\d+), DESC: `)

func (d *driver) sendNow(id int64, messages []*primitive.Message) {
	sent := line{"event": "sent", "id": id}
	result, err := d.producer.SendSync(context.Background(), messages...)
	switch {
	case err == nil:
		sent["outcome"] = "ok"
		sent["broker"] = result.MessageQueue.BrokerName
		sent["queue_id"] = result.MessageQueue.QueueId
		sent["queue_offset"] = result.QueueOffset
	case refusedBy.MatchString(err.Error()):
		code, _ := strconv.Atoi(refusedBy.FindStringSubmatch(err.Error())[1])
		sent["outcome"], sent["code"], sent["why"] = "refused", code, err.Error()
	default: // without an answer of the broker it may have been stored or not
		sent["outcome"], sent["why"] = "unknown", err.Error()
	}
	emit(sent)
}

func (d *driver) stop() {
	d.sent.Wait()
	if d.consumer != nil {
		_ = d.consumer.Shutdown()
		d.lanes.left()
	}
	if d.producer != nil {
		_ = d.producer.Shutdown()
	}
}

// One request. True when the driver is to end.
func (d *driver) answer(id int64, asked line) (bool, error) {
	verb, err := asked.text("verb")
	if err != nil {
		return false, err
	}
	if !d.greeted && verb != "hello" {
		return false, wrong("the first request must be hello")
	}
	switch verb {
	case "hello":
		version, err := asked.number("version", -1)
		if err != nil {
			return false, err
		}
		if version != protocol {
			return false, wrong(fmt.Sprintf("this driver speaks version %d, not %d", protocol, version))
		}
		d.greeted = true
		reply(id, line{
			"version": protocol, "driver": "go", "client": clientVersion(),
			"events": []string{"delivered", "finished", "sent", "assigned", "added", "dropped"},
			"verbs":  []string{"send_batch", "send_delayed"},
		})
		return false, nil
	case "start":
		return false, d.start(id, asked)
	case "send", "send_batch", "send_delayed":
		return false, d.send(id, asked)
	case "stop":
		d.stop()
		reply(id, nil)
		return true, nil
	default:
		return false, wrong("unknown verb " + verb)
	}
}

func clientVersion() string {
	if built, ok := debug.ReadBuildInfo(); ok {
		for _, each := range built.Deps {
			if each.Path == module {
				return strings.TrimPrefix(each.Version, "v")
			}
		}
	}
	return "unknown"
}

func main() {
	os.Stdout = os.Stderr // what a library prints must not stand between our lines
	rlog.SetLogLevel("warn")
	in := bufio.NewReaderSize(os.Stdin, 1<<16)
	d := &driver{lanes: newLanes()}
	consumer.InorderLane = d.lanes.changed
	for {
		text, err := readLine(in)
		if err == io.EOF {
			return
		}
		var id any
		ends := false
		if err == nil {
			var asked line
			if asked, err = parse(text); err == nil {
				var number int64
				if number, err = asked.number("id", -1); err != nil || number < 0 {
					err = wrong("a request needs an id, a whole number")
				} else {
					id = number
					ends, err = d.answer(number, asked)
				}
			}
		}
		if err != nil {
			refuse(id, err)
		}
		if ends {
			return
		}
	}
}
