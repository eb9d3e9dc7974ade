// The driver protocol, version 2, over confluent-kafka-go, which carries librdkafka: one process is one client of a plan.
//
// The application that is played here polls in one goroutine and works in others, one for each partition that it has:
//   - an offset is stored once its work is done (`StoreMessage`, `enable.auto.offset.store` false). What is stored is
//     committed at an interval (`auto.commit.interval.ms`), and before a partition is given back, by `Commit`;
//   - the rebalance's callback looks the committed offsets up, and begins there, as `Assign` prefers it;
//   - it does not wait for work that still runs when its partition is taken: that stores its offset afterwards, and
//     nobody but the library knows whether it still may;
//   - a call that failed is made again after the time for which it was suspended.
//
// A commit is told as that of the incarnation whose work stored the offset: here two may be those of one partition.
// INORDER_CLIENT_OPTIONS holds the settings as a JSON object. When stdin ends, whoever started us is gone: we exit.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/confluentinc/confluent-kafka-go/kafka"
)

const (
	protocol       = 2
	broker         = "b0"
	pollMs         = 50
	answerMs       = 10_000
	lineBytesMax   = 1 << 20
	clockMonotonic = 1
	// The library tries a commit that had no answer again after 80 ms at least: a refusal that came sooner is the
	// answer to the only try.
	triedOnce = 50 * time.Millisecond
)

type line map[string]any

type place struct {
	topic  string
	number int32
}

type request struct {
	ID                                              *int64
	Verb, Role, Client, Group, Topic, Message, Body string
	Version                                         int
	Topics                                          []string
	Listener                                        []rule
	Key                                             *string
	KeySeq                                          *int64 `json:"key_seq"`
	Config                                          struct {
		ConsumeFrom string `json:"consume_from"`
		SuspendMs   *int64 `json:"suspend_ms"`
	}
}

// What is missing matches everything.
type rule struct {
	Outcome, Client, Group, Topic, Key *string
	Number                             *int64
	SuspendMs                          *int64 `json:"suspend_ms"`
	DurationMs                         *int64 `json:"duration_ms"`
	FromMs                             int64  `json:"from_ms"`
	DeliveryMin                        int64  `json:"delivery_min"`
	DeliveryMax                        *int64 `json:"delivery_max"`
}

var (
	out     = os.Stdout
	outLock sync.Mutex
	options = map[string]string{}
)

func emit(told line) {
	outLock.Lock() // the clock is read under the lock, so that the lines ascend
	defer outLock.Unlock()
	var now syscall.Timespec
	if _, _, failed := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0); failed != 0 {
		panic(failed)
	}
	told["at_us"] = now.Nano() / 1000
	written, err := json.Marshal(told)
	if err != nil {
		panic(err)
	}
	_, _ = out.Write(append(written, '\n'))
}

func note(words ...any) { fmt.Fprintln(os.Stderr, words...) }

// The user's settings win over the driver's own; those of the application are not the library's.
func settings(own map[string]string) *kafka.ConfigMap {
	made := kafka.ConfigMap{}
	for _, given := range []map[string]string{own, options} {
		for name, value := range given {
			if !strings.HasPrefix(name, "app.") {
				made[name] = value
			}
		}
	}
	return &made
}

func or[T any](given *T, usual T) T {
	if given == nil {
		return usual
	}
	return *given
}

// ---------------------------------------------------------------------------------------------- the producer

type sender struct {
	producer *kafka.Producer
	sends    chan request
	over     chan bool
}

func newSender(asked request) (*sender, error) {
	producer, err := kafka.NewProducer(settings(map[string]string{
		"acks": "all", "enable.idempotence": "true", "linger.ms": "0",
	}))
	if err != nil {
		return nil, err
	}
	made := &sender{producer, make(chan request, 1<<16), make(chan bool)}
	go func() { // one by one, in the order asked for
		for each := range made.sends {
			made.send(each)
		}
		close(made.over)
	}()
	return made, nil
}

func (s *sender) send(asked request) {
	message := &kafka.Message{
		TopicPartition: kafka.TopicPartition{Topic: &asked.Topic, Partition: kafka.PartitionAny},
		Value:          []byte(asked.Body),
		Headers:        []kafka.Header{{Key: "id", Value: []byte(asked.Message)}},
	}
	if asked.Key != nil {
		message.Key = []byte(*asked.Key)
	}
	if asked.KeySeq != nil {
		seq := strconv.FormatInt(*asked.KeySeq, 10)
		message.Headers = append(message.Headers, kafka.Header{Key: "seq", Value: []byte(seq)})
	}
	answers := make(chan kafka.Event, 1)
	err := s.producer.Produce(message, answers)
	told := line{"event": "sent", "id": *asked.ID, "outcome": "ok", "broker": broker}
	if err == nil {
		answer := (<-answers).(*kafka.Message).TopicPartition
		err = answer.Error
		told["queue_id"], told["queue_offset"] = answer.Partition, int64(answer.Offset)
	}
	if err != nil {
		told = line{"event": "sent", "id": *asked.ID, "outcome": "unknown", "why": err.Error()}
	}
	emit(told)
}

func (s *sender) stop() {
	close(s.sends)
	<-s.over
	s.producer.Close()
}

// ---------------------------------------------------------------------------------------------- the consumer

// A partition while it is ours.
type lane struct {
	at          place
	incarnation int64
	inbox       chan *kafka.Message
	gone        bool
}

type stored struct{ value, incarnation int64 }

type worker struct {
	asked    request
	consumer *kafka.Consumer
	began    time.Time
	every    time.Duration // between two commits
	atWork   atomic.Bool
	over     chan bool
	busy     sync.WaitGroup

	lock    sync.Mutex
	numbers int64
	times   map[string]int64
	lanes   map[place]*lane
	waiting map[place]stored // what the library took and has not committed
}

func newWorker(asked request) (*worker, error) {
	from := map[bool]string{true: "latest", false: "earliest"}[asked.Config.ConsumeFrom == "last"]
	config := settings(map[string]string{
		"group.id": asked.Group, "auto.offset.reset": from, "partition.assignment.strategy": "cooperative-sticky",
		"enable.auto.commit": "false", "enable.auto.offset.store": "false",
	})
	ms, err := strconv.Atoi(options["auto.commit.interval.ms"])
	if err != nil {
		ms = 5000
	}
	consumer, err := kafka.NewConsumer(config)
	if err != nil {
		return nil, err
	}
	w := &worker{
		asked: asked, consumer: consumer, began: time.Now(), every: time.Duration(ms) * time.Millisecond,
		over: make(chan bool), times: map[string]int64{}, lanes: map[place]*lane{}, waiting: map[place]stored{},
	}
	if err = consumer.SubscribeTopics(asked.Topics, w.rebalanced); err != nil {
		return nil, err
	}
	w.atWork.Store(true)
	go w.poll()
	return w, nil
}

func (w *worker) poll() {
	last := time.Now()
	for w.atWork.Load() {
		switch event := w.consumer.Poll(pollMs).(type) {
		case *kafka.Message:
			w.lock.Lock()
			if ours := w.lanes[placeOf(event.TopicPartition)]; ours != nil {
				ours.inbox <- event
			}
			w.lock.Unlock()
		case kafka.Error:
			note("poll:", event)
		}
		if time.Since(last) >= w.every {
			w.commit()
			last = time.Now()
		}
	}
	w.lock.Lock()
	for _, each := range w.lanes {
		each.gone = true
		close(each.inbox)
	}
	w.lock.Unlock()
	w.busy.Wait()
	if err := w.consumer.Close(); err != nil {
		note("close:", err)
	}
	close(w.over)
}

func (w *worker) stop() {
	w.atWork.Store(false)
	<-w.over
}

func (w *worker) work(ours *lane) {
	defer w.busy.Done()
	for message := range ours.inbox {
		for !w.call(ours, message) {
		}
	}
}

// True when there is no more to do for the message.
func (w *worker) call(ours *lane, message *kafka.Message) bool {
	w.lock.Lock()
	if ours.gone {
		w.lock.Unlock()
		return true
	}
	told := described(message, ours.incarnation)
	mark := fmt.Sprint(ours.at, message.TopicPartition.Offset)
	told["reconsume_times"] = w.times[mark]
	w.times[mark]++
	chosen := w.decide(told, w.times[mark])
	number := w.next()
	emit(line{"event": "delivered", "call": number, "messages": []line{told}})
	w.lock.Unlock()
	sleep(or(chosen.DurationMs, 1))
	outcome, wait := or(chosen.Outcome, "success"), or(chosen.SuspendMs, -1)
	emit(line{"event": "finished", "call": number, "outcome": outcome, "manual": false, "suspend_ms": wait})
	if outcome == "success" || outcome == "commit" || outcome == "rollback" {
		w.store(ours, message)
		return true
	}
	if wait < 0 {
		wait = or(w.asked.Config.SuspendMs, 1000)
	}
	sleep(wait)
	return false
}

func (w *worker) store(ours *lane, message *kafka.Message) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if _, err := w.consumer.StoreMessage(message); err != nil {
		note("store:", message.TopicPartition, err)
		return
	}
	w.waiting[ours.at] = stored{int64(message.TopicPartition.Offset) + 1, ours.incarnation}
}

// What is stored of the partitions that are ours. Nothing is stored meanwhile: so we know what it is.
func (w *worker) commit() {
	w.lock.Lock()
	defer w.lock.Unlock()
	asked := map[place]int64{}
	for at := range w.lanes {
		if each, there := w.waiting[at]; there {
			asked[at] = w.next()
			emit(at.with(line{
				"event": "committing", "commit": asked[at], "value": each.value, "incarnation": each.incarnation,
			}))
		}
	}
	if len(asked) == 0 {
		return
	}
	began := time.Now()
	answers, err := w.consumer.Commit()
	outcomes := map[place]string{}
	for _, each := range answers {
		at := placeOf(each)
		if int64(each.Offset) == w.waiting[at].value {
			outcomes[at] = outcome(each.Error, began)
		}
	}
	for at, number := range asked {
		how := outcomes[at]
		switch {
		case err != nil:
			how = outcome(err, began)
		case how == "": // the library had forgotten it
			how = "refused"
			delete(w.waiting, at)
		case how == "ok":
			delete(w.waiting, at)
		}
		emit(line{"event": "committed", "commit": number, "outcome": how})
	}
}

func outcome(err error, began time.Time) string {
	if err == nil {
		return "ok"
	}
	note("commit:", err)
	known, isKafka := err.(kafka.Error)
	if isKafka && known.Code() == kafka.ErrNoOffset {
		return "refused"
	}
	if isKafka && time.Since(began) <= triedOnce {
		switch known.Code() {
		case kafka.ErrIllegalGeneration, kafka.ErrUnknownMemberID, kafka.ErrFencedInstanceID, kafka.ErrState:
			return "refused"
		}
	}
	return "unknown"
}

func (w *worker) rebalanced(consumer *kafka.Consumer, event kafka.Event) error {
	cooperative := consumer.GetRebalanceProtocol() == "COOPERATIVE"
	switch event := event.(type) {
	case kafka.AssignedPartitions:
		found := w.added(event.Partitions)
		if cooperative {
			return consumer.IncrementalAssign(found)
		}
		return consumer.Assign(found)
	case kafka.RevokedPartitions:
		w.commit()
		w.dropped(event.Partitions)
		if cooperative {
			return consumer.IncrementalUnassign(event.Partitions)
		}
		return consumer.Unassign()
	}
	return nil
}

// With the offsets to begin at.
func (w *worker) added(partitions []kafka.TopicPartition) []kafka.TopicPartition {
	w.lock.Lock()
	defer w.lock.Unlock()
	if len(partitions) == 0 {
		return partitions
	}
	incarnations, looks := map[place]int64{}, map[place]int64{}
	for _, each := range partitions {
		at := placeOf(each)
		incarnations[at], looks[at] = w.next(), w.next()
		emit(at.with(line{"event": "looking_up", "look": looks[at], "incarnation": incarnations[at]}))
	}
	found, err := w.consumer.Committed(partitions, answerMs)
	if err != nil {
		note("committed:", err)
		found = partitions
	}
	for _, each := range found {
		at := placeOf(each)
		looked := line{"event": "looked_up", "look": looks[at], "outcome": "ok", "value": int64(each.Offset)}
		added := at.with(line{"event": "added", "incarnation": incarnations[at]})
		switch {
		case err != nil || each.Error != nil:
			looked["outcome"], looked["value"] = "unknown", -1
		case each.Offset >= 0:
			added["value"] = int64(each.Offset)
		default:
			looked["outcome"], looked["value"] = "refused", -1
			if w.asked.Config.ConsumeFrom != "last" {
				added["value"] = 0
			}
		}
		emit(looked)
		emit(added)
		ours := &lane{at: at, incarnation: incarnations[at], inbox: make(chan *kafka.Message, 1<<16)}
		w.lanes[at] = ours
		w.busy.Add(1)
		go w.work(ours)
	}
	return found
}

func (w *worker) dropped(partitions []kafka.TopicPartition) {
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, each := range partitions {
		at := placeOf(each)
		ours := w.lanes[at]
		if ours == nil {
			continue
		}
		delete(w.lanes, at)
		delete(w.waiting, at)
		if !ours.gone {
			ours.gone = true
			close(ours.inbox)
		}
		emit(at.with(line{"event": "dropped", "incarnation": ours.incarnation}))
	}
}

func (w *worker) next() int64 {
	w.numbers++
	return w.numbers
}

// The last rule that fits.
func (w *worker) decide(told line, nth int64) rule {
	for number := len(w.asked.Listener) - 1; number >= 0; number-- {
		each := w.asked.Listener[number]
		id, _ := told["message_id"].(string)
		count, _ := strconv.ParseInt(id[strings.LastIndex(id, "m")+1:], 10, 64)
		key, _ := told["key"].(string)
		if or(each.Number, count) == count && or(each.Client, w.asked.Client) == w.asked.Client &&
			or(each.Group, w.asked.Group) == w.asked.Group && or(each.Topic, told["topic"].(string)) == told["topic"] &&
			or(each.Key, key) == key && nth >= each.DeliveryMin && nth <= or(each.DeliveryMax, nth) &&
			time.Since(w.began).Milliseconds() >= each.FromMs {
			return each
		}
	}
	return rule{}
}

func described(message *kafka.Message, incarnation int64) line {
	told := line{
		"queue_offset": int64(message.TopicPartition.Offset), "message_id": nil, "key": nil, "key_seq": nil,
		"body": string(message.Value), "incarnation": incarnation,
	}
	for _, each := range message.Headers {
		if name := map[string]string{"id": "message_id", "seq": "key_seq"}[each.Key]; name != "" && len(each.Value) > 0 {
			told[name] = string(each.Value)
		}
	}
	if message.Key != nil {
		told["key"] = string(message.Key)
	}
	return placeOf(message.TopicPartition).with(told)
}

func (at place) with(told line) line {
	told["topic"], told["broker"], told["queue_id"] = at.topic, broker, at.number
	return told
}

func placeOf(each kafka.TopicPartition) place { return place{*each.Topic, each.Partition} }

func sleep(ms int64) { time.Sleep(time.Duration(ms) * time.Millisecond) }

// ---------------------------------------------------------------------------------------------- the requests

type driver struct {
	greeted bool
	client  interface{ stop() }
}

// What the answer says; nil when events do.
func (d *driver) answer(asked request) (said line, err error) {
	if !d.greeted && asked.Verb != "hello" {
		return nil, fmt.Errorf("the first request must be hello")
	}
	said = line{}
	switch asked.Verb {
	case "hello":
		if asked.Version != protocol {
			return nil, fmt.Errorf("this driver speaks version %d, not %d", protocol, asked.Version)
		}
		d.greeted = true
		_, version := kafka.LibraryVersion()
		said = line{
			"version": protocol, "driver": "kafka-go", "client": version, "verbs": []string{},
			"events": []string{"delivered", "finished", "sent", "added", "dropped", "looked_up", "gave_up", "committed"},
		}
	case "start":
		if asked.Role == "consumer" {
			d.client, err = newWorker(asked)
		} else {
			d.client, err = newSender(asked)
		}
	case "send":
		producer, isOne := d.client.(*sender)
		if !isOne {
			return nil, fmt.Errorf("only a producer that was started sends")
		}
		producer.sends <- asked
		said = nil
	case "stop":
		if d.client != nil {
			d.client.stop()
		}
	default:
		err = fmt.Errorf("there is no verb %.40q", asked.Verb)
	}
	return said, err
}

func main() {
	os.Stdout = os.Stderr // what a library prints must not stand between our lines
	if given := os.Getenv("INORDER_CLIENT_OPTIONS"); given != "" {
		if err := json.Unmarshal([]byte(given), &options); err != nil {
			note("INORDER_CLIENT_OPTIONS:", err)
			os.Exit(1)
		}
	}
	lines := bufio.NewReaderSize(os.Stdin, lineBytesMax+1)
	d := &driver{}
	for {
		text, isLonger, err := lines.ReadLine()
		if err != nil {
			return
		}
		var asked request
		if isLonger {
			for isLonger && err == nil {
				_, isLonger, err = lines.ReadLine()
			}
			err = fmt.Errorf("a line is longer than %d bytes", lineBytesMax)
		} else {
			err = json.Unmarshal(text, &asked)
		}
		if err == nil && asked.ID == nil {
			err = fmt.Errorf("a request needs an id")
		}
		var said line
		if err == nil {
			said, err = d.answer(asked)
		}
		if err != nil {
			emit(line{"reply": asked.ID, "ok": false, "error": err.Error()})
			continue
		}
		if said != nil {
			said["reply"], said["ok"] = *asked.ID, true
			emit(said)
		}
		if asked.Verb == "stop" {
			return
		}
	}
}
