"""Everything that a case can say.

A function's docstring is the command's explanation in `docs/cases.md`; its answer is the lines that follow `----`.
What raw clients hear later, and what consumers do, is told by the world after each command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conformance.cases import questions
from conformance.cases.story import WATCHED
from conformance.cases.table import Handler, says
from conformance.cases.world import Setting, World
from reference_impl.core.allocation import strategy
from reference_impl.protocol.bodies import SubscriptionGroup
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.message import StoredMessage, own_properties
from specs.errors import UsageError
from specs.faults import FAULTS
from specs.plan.fault import Fault, Saying
from specs.plan.plan import STATES, ListenerRule
from specs.vocabulary import Outcome, Queue

# ---------------------------------------------------------------- before anything happens


@says("config WORDS", setup=True)
def config(setting: Setting, words: Sequence[str]) -> list[str]:
    """Numbers and names of the run, as `max_reconsume_times=1 dialect=4.9`; the names are those of a plan."""
    values: dict[str, int | str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"config words are name=value, not {word!r}")
        is_text = name in ("dialect", "consume_from", "delay_levels", "flush")
        values[name] = value if is_text or not re.fullmatch(r"-?\d+", value) else int(value)
    setting.configure(values)
    return []


@says("topic TOPIC with COUNT queues", setup=True)
@says("topic TOPIC with COUNT queue", setup=True)
def topic(setting: Setting, topic: str, count: int) -> list[str]:
    """A topic on each broker; `orders` has one queue when nobody says otherwise."""
    setting.topics[topic] = count
    return []


@says("brokers BROKERS", setup=True)
def brokers(setting: Setting, brokers: Sequence[str]) -> list[str]:
    """The brokers' names; without it there is one, `b0`."""
    setting.brokers = tuple(brokers)
    return []


# ---------------------------------------------------------------- time


@says("time passes MS ms")
def time_passes(world: World, ms: int) -> list[str]:
    """Virtual time: everything that is due happens."""
    world.pass_time(ms)
    return []


# ---------------------------------------------------------------- leases


@says("lock GROUP QUEUES[ as OWNER] by CLIENT")
def lock(
    world: World, group: str, queues: Sequence[Queue], owner: str | None, client: str
) -> list[str]:
    """A raw client asks for leases: `orders/b0/0,1`, several of them, or `nothing`; `as`: under another id."""
    return [
        world.ask(client, questions.lock(_address(world, queues), group, owner or client, queues))
    ]


@says("unlock GROUP QUEUES by CLIENT")
def unlock(world: World, group: str, queues: Sequence[Queue], client: str) -> list[str]:
    """A raw client gives leases back, its own or not."""
    return [world.ask(client, questions.unlock(_address(world, queues), group, client, queues))]


def _address(world: World, queues: Sequence[Queue]) -> str:
    return world.address(queues[0].broker if queues else world.brokers[0])


# ---------------------------------------------------------------- members


@says("join GROUP[ on TOPIC][ as OWNER] by CLIENT")
def join(world: World, group: str, topic: str | None, owner: str | None, client: str) -> list[str]:
    """A raw client's heartbeat at the first broker; `as`: under another client's id."""
    address = world.address(world.brokers[0])
    return [
        world.ask(client, questions.join(address, group, owner or client, (topic or "orders",)))
    ]


@says("leave GROUP[ as OWNER] by CLIENT")
def leave(world: World, group: str, owner: str | None, client: str) -> list[str]:
    """A raw client unregisters from the group; `as`: under another client's id."""
    return [
        world.ask(client, questions.leave(world.address(world.brokers[0]), group, owner or client))
    ]


@says("members GROUP by CLIENT")
def members(world: World, group: str, client: str) -> list[str]:
    """Who is in the group, as the first broker lists them."""
    return [world.ask(client, questions.members(world.address(world.brokers[0]), group))]


@says("CLIENT disconnects")
def disconnects(world: World, client: str) -> list[str]:
    """A raw client's connections close, without a word."""
    world.disconnect(client)
    return []


@says("group GROUP has COUNT retry queues by CLIENT")
@says("group GROUP has COUNT retry queue by CLIENT")
def retry_queues(world: World, group: str, count: int, client: str) -> list[str]:
    """An operator makes the group, or changes its settings."""
    address = world.address(world.brokers[0])
    return [
        world.ask(
            client, questions.change_group(address, SubscriptionGroup(group, retry_queues=count))
        )
    ]


# ---------------------------------------------------------------- messages


@says("send QUEUE IDS[ keyed KEY][ tagged TAG][ tried TIMES][ of LIMIT][ at level LEVEL] by CLIENT")
def send(
    world: World,
    queue: Queue,
    ids: Sequence[int],
    key: str | None,
    tag: str | None,
    times: int | None,
    limit: int | None,
    level: int | None,
    client: str,
) -> list[str]:
    """A raw client sends messages `m1 m2` or `m1..m9`, one after the other.

    `tried`, `of`: counter and limit in the header, as an orderly consumer sends them to a retry topic.
    """
    origin = None if times is None else "orders"
    answers = []
    for number in ids:
        properties = questions.properties_of(key, tag, level, None, origin)
        asked = questions.send(
            world.address(queue.broker),
            queue,
            f"m{number}",
            properties=properties,
            times=times,
            limit=limit,
            now_ms=world.wall_ms,
            attempt=world.attempt(f"m{number}"),
        )
        answers.append(world.ask(client, asked))
    offsets = [answer.removeprefix("stored at ") for answer in answers]
    if len(ids) > 1 and all(offset.isdecimal() for offset in offsets):
        return [f"stored at {' '.join(offsets)}"]
    return answers


@says("send QUEUE without an id by CLIENT")
def send_nameless(world: World, queue: Queue, client: str) -> list[str]:
    """A message that its producer gave no id; the answer tells the one that the broker gave it, if it did."""
    asked = questions.send(
        world.address(queue.broker), queue, None, properties={}, now_ms=world.wall_ms
    )
    return [world.ask(client, asked)]


@says("PRODUCER produces COUNT to TOPIC[ keyed KEY][ tagged TAG][ at level LEVEL]")
def produces(
    world: World,
    producer: str,
    count: int,
    topic: str,
    key: str | None,
    tag: str | None,
    level: int | None,
) -> list[str]:
    """A producer of our own sends that many messages, one after the other; they are numbered through, from m1 on."""
    args = {"client": producer, "topic": topic, "count": count}
    world.perform("start", {"client": producer})
    words = {"key": key, "tags": tag, "delay_level": level}
    world.perform(
        "send", {**args, **{name: word for name, word in words.items() if word is not None}}
    )
    return []


@says("PRODUCER produces a batch of COUNT to TOPIC")
def produces_batch(world: World, producer: str, count: int, topic: str) -> list[str]:
    """The same, all of them in one request."""
    world.perform("start", {"client": producer})
    world.perform("send", {"client": producer, "topic": topic, "count": count, "batch": True})
    return []


@says("PRODUCER produces COUNT half messages to TOPIC[ keyed KEY] with WORDS")
def produces_halves(
    world: World, producer: str, count: int, topic: str, key: str | None, words: Sequence[str]
) -> list[str]:
    """Messages that nobody sees before their commit; the words say how each transaction ends, and what is answered.

    `commit`, `rollback` or `unknown`, then, after `asked`, what the producer says when the broker asks.
    """
    ends, *rest = words
    checked = rest[1] if len(rest) == 2 and rest[0] == "asked" else ends
    if (rest and len(rest) != 2) or not {ends, checked} <= set(STATES):
        raise UsageError(
            f"{' '.join(words)!r} is no end of a transaction; write {', '.join(STATES)}, and asked STATE"
        )
    args = {"client": producer, "topic": topic, "count": count, "ends": ends, "checked": checked}
    world.perform("start", {"client": producer})
    world.perform("send_half", args if key is None else {**args, "key": key})
    return []


@says("give up ID of QUEUE for GROUP tried TIMES of LIMIT by CLIENT")
def give_up(
    world: World, id: int, queue: Queue, group: str, times: int, limit: int, client: str
) -> list[str]:
    """A copy goes to the group's retry topic, as an orderly consumer sends one that is exhausted."""
    address = world.address(queue.broker)
    return [
        world.ask(
            client, questions.give_up(address, group, queue, f"m{id}", times, limit, world.wall_ms)
        )
    ]


@says("send back ID of QUEUE to GROUP at level LEVEL[ of LIMIT] by CLIENT")
def send_back(
    world: World, id: int, queue: Queue, group: str, level: int, limit: int | None, client: str
) -> list[str]:
    """A concurrent consumer returns a message (CONSUMER_SEND_MSG_BACK)."""
    message = _stored(world, queue, f"m{id}")
    return [
        world.ask(
            client, questions.send_back(world.address(queue.broker), group, message, level, limit)
        )
    ]


def _stored(world: World, queue: Queue, message_id: str) -> StoredMessage:
    for message in world.store(queue.broker).queue(queue.topic, queue.queue_id).messages:
        if message.message_id == message_id:
            return message
    raise UsageError(f"there is no {message_id} in {queue}")


@says(
    "pull GROUP QUEUE from OFFSET[ at most COUNT][ wanting TAG][ committing LIMIT][ waiting MS ms] by CLIENT"
)
def pull(
    world: World,
    group: str,
    queue: Queue,
    offset: int,
    count: int | None,
    tag: str | None,
    limit: int | None,
    ms: int | None,
    client: str,
) -> list[str]:
    """A raw client pulls; `waiting`: it may be parked, and then hears the answer later."""
    asked = questions.pull(
        world.address(queue.broker),
        group,
        queue,
        offset,
        count=count or 32,
        wait_ms=ms or 0,
        commit=limit,
        tag=tag,
    )
    return [world.ask(client, asked)]


@says("messages in TOPIC")
def messages(world: World, topic: str) -> list[str]:
    """What lies in the topic on all brokers: queue, offset, id; origin's id, retry counter, delay level if any."""
    return _listed(world, topic, _told)


def _told(message: StoredMessage) -> str:
    words = [str(message.queue_offset), message.message_id or message.offset_id]
    if message.origin_id:
        words.append(f"origin={message.origin_id}")
    if message.reconsume_times:
        words.append(f"rt={message.reconsume_times}")
    if (message.delay_level or 0) > 0:
        words.append(f"delay={message.delay_level}")
    return "  ".join(words)


@says("bodies in TOPIC")
def bodies(world: World, topic: str) -> list[str]:
    """The same, with each message's body. A raw client's message has its id for a body."""
    return _listed(world, topic, lambda message: f"{_told(message)}  {message.body.decode()}")


@says("properties in TOPIC")
def properties(world: World, topic: str) -> list[str]:
    """The same, with the application's own properties. Messages that our producer makes have their number."""
    return _listed(world, topic, _with_properties)


def _with_properties(message: StoredMessage) -> str:
    own = own_properties(message.properties)
    return "  ".join([_told(message), *(f"{name}={own[name]}" for name in sorted(own))])


def _listed(world: World, topic: str, tell: Callable[[StoredMessage], str]) -> list[str]:
    lines = []
    for broker in world.brokers:
        queues = world.store(broker).queues()
        for name, number in sorted(queues):
            if name == topic:
                place = f"{topic}/{broker}/{number}"
                lines += [f"{place}  {tell(message)}" for message in queues[name, number].messages]
    return lines or [f"{topic}  none"]


@says("retention forgets QUEUE below OFFSET")
def retention(world: World, queue: Queue, offset: int) -> list[str]:
    """The broker's oldest messages go."""
    world.cluster.forget_below(queue, offset)
    return []


# ---------------------------------------------------------------- offsets


@says("commit GROUP QUEUE OFFSET by CLIENT")
def commit(world: World, group: str, queue: Queue, offset: int, client: str) -> list[str]:
    """A raw client stores a consumed offset, whoever owns the lane."""
    return [world.ask(client, questions.commit(world.address(queue.broker), group, queue, offset))]


@says("commit GROUP QUEUE nothing by CLIENT")
def commit_nothing(world: World, group: str, queue: Queue, client: str) -> list[str]:
    """The same request without its offset."""
    return [world.ask(client, questions.commit(world.address(queue.broker), group, queue, None))]


@says("fetch GROUP QUEUE by CLIENT")
def fetch(world: World, group: str, queue: Queue, client: str) -> list[str]:
    """A raw client asks which offset is stored."""
    return [world.ask(client, questions.fetch(world.address(queue.broker), group, queue, None))]


@says("fetch GROUP QUEUE without zero by CLIENT")
def fetch_plainly(world: World, group: str, queue: Queue, client: str) -> list[str]:
    """The same with `setZeroIfNotFound=false`."""
    return [world.ask(client, questions.fetch(world.address(queue.broker), group, queue, False))]


@says("reset GROUP QUEUE to OFFSET by CLIENT")
def reset(world: World, group: str, queue: Queue, offset: int, client: str) -> list[str]:
    """An operator moves the stored offset (INVOKE_BROKER_TO_RESET_OFFSET); the answer names where to."""
    return [world.ask(client, questions.reset(world.address(queue.broker), group, queue, offset))]


@says("reset GROUP QUEUE to the time of MS ms by CLIENT")
def reset_to_a_time(world: World, group: str, queue: Queue, ms: int, client: str) -> list[str]:
    """The same, to the first message stored at or after that time of the case."""
    moment_ms = world.wall_ms - world.now_ms + ms
    return [
        world.ask(
            client, questions.reset(world.address(queue.broker), group, queue, None, moment_ms)
        )
    ]


@says("reset GROUP QUEUE to the first message by CLIENT")
def reset_to_the_first(world: World, group: str, queue: Queue, client: str) -> list[str]:
    """The same, to time 0, as consoles do for whoever wants everything once more."""
    return [world.ask(client, questions.reset(world.address(queue.broker), group, queue, None, 0))]


@says("end of QUEUE by CLIENT")
def end_of(world: World, queue: Queue, client: str) -> list[str]:
    """The offset that the next message gets (GET_MAX_OFFSET)."""
    return [world.ask(client, questions.end_of(world.address(queue.broker), queue))]


@says("start of QUEUE by CLIENT")
def start_of(world: World, queue: Queue, client: str) -> list[str]:
    """The lowest offset that is kept (GET_MIN_OFFSET)."""
    return [world.ask(client, questions.start_of(world.address(queue.broker), queue))]


@says("search QUEUE at MS ms by CLIENT")
def search(world: World, queue: Queue, ms: int, client: str) -> list[str]:
    """The first offset stored at or after that time of the case (SEARCH_OFFSET_BY_TIMESTAMP)."""
    moment_ms = world.wall_ms - world.now_ms + ms
    return [world.ask(client, questions.search(world.address(queue.broker), queue, moment_ms))]


@says("request CODE by CLIENT")
def anything(world: World, code: int, client: str) -> list[str]:
    """A request with that code and nothing in it, to the first broker."""
    return [world.ask(client, questions.anything(world.address(world.brokers[0]), code))]


# ---------------------------------------------------------------- consumers


@says("CONSUMER starts in GROUP on WORDS")
def starts(world: World, consumer: str, group: str, words: Sequence[str]) -> list[str]:
    """A consumer of the group, for the first time; an orderly one unless the configuration says otherwise."""
    world.perform("start", {"client": consumer})
    return []


@says("CONSUMER stops")
def stops(world: World, consumer: str) -> list[str]:
    """A consumer shuts down in good order."""
    world.perform("stop", {"client": consumer})
    return []


@says("watch WORDS")
def watch(world: World, words: Sequence[str]) -> list[str]:
    """What is told of consumers and producers from now on, with `on TOPIC` of that topic only.

    At first it is `deliveries dead-letters sends send-backs`; there are also commits, fetches, pulls, locks, unlocks,
    adds, drops, assigns, leaves, transactions, and the `writes` of broadcast consumers into their own files.
    """
    topic: str | None = None
    if len(words) > 2 and words[-2] == "on":
        *words, _, topic = words
    unknown = [word for word in words if word not in WATCHED]
    if unknown:
        raise UsageError(f"{unknown[0]!r} can't be watched; known are {', '.join(WATCHED)}")
    world.story.kinds = frozenset(kind for word in words for kind in WATCHED[word])
    world.story.topic = topic
    return []


# ---------------------------------------------------------------- listeners

_RESULTS = {
    "success": Outcome.SUCCESS,
    "commit": Outcome.COMMIT,
    "rollback": Outcome.ROLLBACK,
    "suspend": Outcome.SUSPEND,
    "null": Outcome.NULL,
    "throw": Outcome.THREW,
}


@says("listener answers IDS with WORDS")
def listener(world: World, ids: Sequence[int], words: Sequence[str]) -> list[str]:
    """How calls end that begin with one of the messages; the last word on a message wins.

    A result (success, commit, rollback, suspend, null, throw), then what is needed of `for MS ms` (asks for that
    pause), `manually` (switches auto commit off), `after MS ms` (the call takes so long), `at try N`, `from try N`,
    `until try N` (counted by the consumer's process), `by NAME` (that consumer only).
    """
    rule = _rule(" ".join(words))
    for number in ids:
        world.cluster.add_rule(replace(rule, number=number))
    return []


@says("listener answers everything with WORDS")
def listener_of_all(world: World, words: Sequence[str]) -> list[str]:
    """The same for all messages."""
    world.cluster.add_rule(_rule(" ".join(words)))
    return []


_RULE = re.compile(
    r"(?P<result>[a-z]+)(?: for (?P<suspend>-?\d+) ms)?(?P<manually> manually)?(?: after (?P<duration>\d+) ms)?"
    r"(?: (?P<when>at|from|until) try (?P<try_>\d+))?(?: by (?P<client>[a-z][a-z0-9_]*))?"
)


def _rule(text: str) -> ListenerRule:
    match = _RULE.fullmatch(text)
    if match is None or match["result"] not in _RESULTS:
        raise UsageError(
            f"{text!r} is no listener's answer; it is one of {', '.join(_RESULTS)}, then, in this order and as "
            "needed, `for N ms`, `manually`, `after N ms`, `at|from|until try N`, `by NAME`"
        )
    usual = ListenerRule()
    number = int(match["try_"] or 0)
    return ListenerRule(
        _RESULTS[match["result"]],
        suspend_ms=usual.suspend_ms if match["suspend"] is None else int(match["suspend"]),
        duration_ms=usual.duration_ms if match["duration"] is None else int(match["duration"]),
        manual=match["manually"] is not None,
        client=match["client"],
        delivery_min=number if match["when"] in ("at", "from") else usual.delivery_min,
        delivery_max=number if match["when"] in ("at", "until") else usual.delivery_max,
    )


# ---------------------------------------------------------------- faults


@dataclass(frozen=True, slots=True)
class _Way:
    """One of the actions that a sentence stands for: a fault's verb or that which ends it, and how it is said."""

    verb: str
    fault: Fault
    saying: Saying


def _of_a_fault(ways: Sequence[_Way]) -> Handler:
    """The command of a sentence about faults. Where it stands for several, the node says which one is meant."""

    def handle(world: World, **told: Any) -> list[str]:
        for way in ways:
            args = {name: told[word.lower()] for name, word in way.saying.takes.items()}
            of_broker = any(args[name] in world.brokers for name in way.fault.nodes)
            if len(ways) == 1 or way.fault.fits(is_broker=of_broker):
                codes = {name: _code(args[name]) for name in args if name == "code"}
                world.perform(way.verb, {**args, **codes, **way.saying.fixed})
        return []

    handle.__doc__ = " ".join(dict.fromkeys(way.saying.meaning for way in ways))
    return handle


def _code(name: str) -> int:
    try:
        return int(RequestCode[name])
    except KeyError:
        raise UsageError(
            f"there is no request {name!r}; the names are RocketMQ's, as in LOCK_BATCH_MQ"
        ) from None


def _sentences_of_faults() -> None:
    """Every sentence that a fault has for its begin or its end joins the table, by the faults' ranks."""
    ways: dict[str, list[_Way]] = {}
    for fault in FAULTS.values():
        for saying in fault.says:
            ways.setdefault(saying.form, []).append(_Way(fault.verb, fault, saying))
        for saying in fault.healing_says:
            assert fault.healed_by is not None, "what has no end has no word for it"
            ways.setdefault(saying.form, []).append(_Way(fault.healed_by, fault, saying))
    for form, meant in ways.items():
        says(form)(_of_a_fault(meant))


_sentences_of_faults()


# ---------------------------------------------------------------- allocation


@says("allocate WORD COUNT queues to NAMES")
def allocate(world: World, word: str, count: int, names: Sequence[str]) -> list[str]:
    """Who gets which of so many queues of one broker, by strategy: each member, in the order given."""
    share = strategy(word, world.strategies)
    queues = [Queue("orders", "b0", number) for number in range(count)]
    lines = []
    for name in dict.fromkeys(names):
        mine = " ".join(str(queue.queue_id) for queue in share(name, queues, list(names)))
        lines.append(f"{name}  {mine or 'none'}")
    return lines
