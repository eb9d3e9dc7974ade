"""The conditions under which clauses are claimed. They are checked, not assumed."""

from collections.abc import Callable
from dataclasses import dataclass, field

from specs.clauses.context import FLUSHED_LATER
from specs.history.runinfo import RunInfo
from specs.vocabulary import Kind


@dataclass(frozen=True, slots=True)
class Premise:
    """A condition under which a clause is claimed. Checked, not assumed: `text` says how.

    holds: for a condition that a run meets or not from its begin to its end. Where it does not hold the clause is
    not judged, and not claimed. None: the judge, or the context, watches for it event by event. told_by: the kinds of
    rows that tell that it failed. settings: what of the configuration it looks at.
    """

    name: str
    text: str
    holds: Callable[[RunInfo], bool] | None = field(default=None, repr=False, compare=False)
    told_by: frozenset[Kind] = field(default=frozenset(), repr=False, compare=False)
    settings: frozenset[str] = field(default=frozenset(), repr=False, compare=False)


NO_WALL_CLOCK_STEP = Premise(
    "no wall-clock step",
    "no wall clock of a party was stepped; after a recorded step lease clauses stop judging",
    told_by=frozenset({Kind.CLOCK_STEP}),
)
STAMPS_COMPARE = Premise(
    "times on messages compare",
    "no wall clock was stepped by which the times on messages are written: such a step is all that they show",
    told_by=frozenset({Kind.CLOCK_STEP}),
)
CLOSED_WORLD = Premise(
    "closed world",
    "the history holds every producer and consumer (run.json says so)",
    lambda info: info.closed_world,
)
BATCH_OF_ONE = Premise(
    "batch of one",
    "the consumer takes one message per listener call (configuration)",
    lambda info: info.config.batch == 1,
    settings=frozenset({"batch"}),
)
BROKER_LIVES = Premise(
    "the broker lives",
    "no crash of the broker between the grant and the event: neither a crash row nor a new epoch of it",
    told_by=frozenset({Kind.CRASH}),
)
NO_RESET = Premise(
    "no reset",
    "no operator moved the offset; a reset row clears what is remembered, unless it was refused",
    told_by=frozenset({Kind.RESET}),
)
NO_ROLLBACK = Premise("no rollback", "no ROLLBACK by this incarnation: it replays without counting")
NO_FRAME_TWICE = Premise(
    "no frame twice",
    "nothing on the way made two frames of one; a recorded fault `duplicate` silences the clause",
    told_by=frozenset({Kind.FAULT}),
)
DEAD_LETTER_SENT = Premise(
    "dead letter sent", "no send to the dead letters failed or stayed unanswered"
)
ORDERLY = Premise(
    "orderly",
    "the group consumes in orderly mode and clustering; other modes take no lease (configuration)",
    lambda info: info.config.mode == "orderly" and info.config.message_model == "clustering",
    settings=frozenset({"mode", "message_model"}),
)
CONCURRENT = Premise(
    "concurrent",
    "the group consumes in concurrent mode and clustering (configuration)",
    lambda info: info.config.mode == "concurrent" and info.config.message_model == "clustering",
    settings=frozenset({"mode", "message_model"}),
)
KEY_ORDERED = Premise(
    "key-ordered",
    "the group consumes concurrently, one worker per sharding key, in clustering (configuration)",
    lambda info: info.config.mode == "key_ordered" and info.config.message_model == "clustering",
    settings=frozenset({"mode", "message_model"}),
)
OUT_OF_ORDER = Premise(
    "concurrent or key-ordered",
    "the group consumes concurrently, whether or not by key, in clustering (configuration)",
    lambda info: (
        info.config.mode in ("concurrent", "key_ordered")
        and info.config.message_model == "clustering"
    ),
    settings=frozenset({"mode", "message_model"}),
)
IN_PLACE = Premise(
    "orderly or key-ordered",
    "the group consumes in order, of each lane or of each key, and retries in place, in clustering (configuration)",
    lambda info: (
        info.config.mode in ("orderly", "key_ordered") and info.config.message_model == "clustering"
    ),
    settings=frozenset({"mode", "message_model"}),
)
BROADCASTING = Premise(
    "broadcasting",
    "every member of the group consumes every queue (configuration)",
    lambda info: info.config.message_model == "broadcasting",
    settings=frozenset({"message_model"}),
)
CLUSTERING = Premise(
    "clustering",
    "the members of a group share its queues (configuration)",
    lambda info: info.config.message_model == "clustering",
    settings=frozenset({"message_model"}),
)
DEALT = Premise(
    "dealt",
    "the members share by a strategy that deals the queues out, not by a fixed list (configuration)",
    lambda info: info.config.strategy != "CONFIG",
    settings=frozenset({"strategy"}),
)
DEALT_TO_THE_LAST = Premise(
    "dealt to the last",
    "the members share by a strategy that deals all queues out: neither a fixed list nor that of listed machine rooms "
    "(configuration)",
    lambda info: info.config.strategy not in ("CONFIG", "MACHINE_ROOM"),
    settings=frozenset({"strategy"}),
)
NOT_PAUSED = Premise(
    "not paused",
    "the client was not stopped in between; a recorded pause silences the clause",
    told_by=frozenset({Kind.PAUSE}),
)
BROKER_NOT_PAUSED = Premise(
    "broker not paused",
    "the broker was not stopped in between; a recorded pause silences the clause",
    told_by=frozenset({Kind.PAUSE}),
)
NO_FILTER = Premise(
    "no filter",
    "the group subscribes to every message of the topic: `*` (configuration)",
    lambda info: info.config.subscription == "*",
    settings=frozenset({"subscription"}),
)
FILTERED = Premise(
    "filtered",
    "the group subscribes to some tags only (configuration)",
    lambda info: info.config.subscription != "*",
    settings=frozenset({"subscription"}),
)
AUTO_MODE = Premise(
    "auto mode", "the listener left the commit to the client: a manual ROLLBACK replays"
)
SENT_IN_TURN = Premise(
    "sent in turn",
    "the producer numbers a key's messages and sends the next one after the last was acknowledged",
)
SAME_QUEUES = Premise(
    "same queues", "the sends chose by the same selector from the same queues, as their `view` says"
)
SETTLED = Premise(
    "settled",
    "the harness heals all faults and waits until nothing happens before it drains (run.json says so); a reading that "
    "was not so prepared is passed over",
    lambda info: info.settles,
)
NOT_MOVED = Premise(
    "not moved",
    "no operator moved the lane's offset before: what becomes of leases, of counts and of the floor is then another "
    "thing in each system",
    told_by=frozenset({Kind.RESET}),
)
NOT_REMOVED = Premise(
    "not removed",
    "the broker did not say that it keeps the message no longer; below an announced minimum nothing is claimed",
    told_by=frozenset({Kind.TRIM}),
)
NOTHING_TAKEN_BACK = Premise(
    "nothing taken back",
    "no broker answers before it flushes (configuration, `flush` async): its crash would take back what consumers have "
    "seen, and give the offsets to other messages, which they then pass by",
    lambda info: info.config.flush != FLUSHED_LATER,
)
IN_FLIGHT = Premise(
    "in flight",
    "a producer begins sends while others of its are not answered, each after the one before, and the system says that "
    "this changes nothing of their order (configuration, `in_flight`, of more than one)",
    lambda info: info.config.counts("in_flight") > 1,
)
ANSWERED = Premise(
    "answered",
    "its producer was told what came of each of its sends, up to these two: who gives a send up that may be stored "
    "begins anew with those behind it",
)
GENERATIONS = Premise(
    "generations",
    "whoever hands the lanes of a group out numbers each time at which it does, and knows in which generation a member "
    "commits (configuration, `generations`)",
    lambda info: bool(info.config.says("generations")),
)
DRAINED = Premise("drained", "the queue was read to its end after everything else")
FRESH_LEASE = Premise(
    "fresh lease", "a grant was answered before the lane was ready, and outlives the bound"
)
UNHINDERED = Premise(
    "unhindered",
    "a request arrives within its time, unless a fault of its link or a pause stood in its way; a recorded one puts "
    "off until when it may be applied",
)
CONNECTED = Premise(
    "connected",
    "the holder neither died, left nor stood still since, and nothing was injected: some systems end a lease with its "
    "connection",
    told_by=frozenset({Kind.CRASH, Kind.LEAVE, Kind.PAUSE, Kind.FAULT}),
)
