"""What a row of each kind says: the conventions that recorders keep and judges rely on."""

from __future__ import annotations

from collections.abc import Mapping

from specs.vocabulary import Kind, Level, Outcome

CONVENTIONS: Mapping[Kind, str] = {
    Kind.APPEND: "A broker stored a message; level `store`.",
    Kind.SEND: "One send of one message. When `ok`: `queue_id` and `queue_offset` say where it lies. `attempt` counts "
    "the tries of one message id; a row without it is taken for the first. Here as in DELIVER and "
    "READ, a row with `body_hash` shows the whole message: no "
    "`tags`, or no `sharding_key`, then means that it has none. "
    "`view`, where a queue was chosen for the message's key: the selector's name and, in their order, the queues that "
    "it chose from, as `java-hash b0/0 b0/1`; `random` and `round-robin` look at no key. "
    "The messages of a batch share their `op_id`, `value` is each one's place in it, from 0, and only the first one "
    "has a `queue_offset`, since the answer names no other. "
    "With a `delay_level` above 0 `queue_id` is the queue it is meant for and "
    "`queue_offset` its place among those that wait; it has no `key_seq`. "
    "In DELIVER and READ `delay_level` is the level that the message says it was sent with, 0 when it says none; "
    "without the column nobody looked. "
    "The `detail` of a half message's begins with `half`; it has neither `key_seq` nor `queue_offset`, and `value` is "
    "its place among the half messages when `ok`. Whoever records it records every end of its transaction too.",
    Kind.LOCK: "One row for each lane that was asked for; `ok` granted, `refused` not among the granted. A refusal "
    "with a `code` other than 0 is an error answer and says nothing about the lane.",
    Kind.UNLOCK: "One row for each lane; one way (`sent`) or answered (`ok`); `refused` when it could not be sent "
    "at all.",
    Kind.RENEW: "The holder of a lease asks that it last longer: of a lane, or, with `queue_offset` or `message_id`, "
    "of a message. `lease_id` or `generation` name the grant, `lease_until_us` is until when it then lasts; `refused`: "
    "the lease is over. A lock that is asked for again is a LOCK.",
    Kind.RECEIVE: "A server that leases messages one by one handed one out: a row for each message of an answer, which "
    "share their `op_id`. It begins when the member asked and ends when the answer came; the hand-out lies between. "
    "`lease_id` is what names this lease when it is acknowledged, put back or prolonged (a receipt, a tag, or the "
    "message and its delivery's number); `lease_until_us`, on the member's clock, until when it lasts at least: asking "
    "plus the lease, where the server gives no end; without the column the lease has no end in time. `reconsume_times` "
    "is how often the message was handed out before, as the server says. An answer that was lost has one row of "
    "outcome `unknown` with neither offset nor id, of each lane that was asked for; one that brought nothing has none.",
    Kind.ACK: "A member acknowledges one message, by `queue_offset` (or `message_id`) and `lease_id`: of a group whose "
    "messages are leased one by one, where a COMMIT would speak of all that lies before. `ok`: the server says that it "
    "took it; `refused`: that the lease is over; `sent`: it answers nothing.",
    Kind.RELEASE: "Likewise: the member puts the message back, to be handed out again no sooner than `suspend_ms` "
    "after that. One that the member wants to be given up at once has an ACK: nobody is to be handed it again.",
    Kind.PULL: "`queue_offset` is the offset that was asked for, `value` the next one that the broker named.",
    Kind.DELIVER: "A listener call: one row for each message, in ascending offsets, all with one `op_id`. Begins "
    "before the listener, ends with its result; `commit_mode` and (where the batch comes again) `suspend_ms` are set "
    "at the end. `reconsume_times` is what the listener was shown. A call that a crash cut never ends, "
    "and neither does one of which nobody saw the end: of one that ended with `unknown` or `cut` clauses say that it "
    "finished nothing.",
    Kind.COMMIT: "`value` is the offset. One way: `sent`; carried by a pull: `view=pull`, and `ok` where the broker "
    "read the queue for it, also where it found nothing (19, 20) or told the pull to go on elsewhere (21): the commit "
    "was taken before; else the outcome is the pull's. "
    "`detail=corrected` marks the value that a broker (offset illegal) or a filter made.",
    Kind.FETCH_OFFSET: "`value` is the stored offset when `ok`; `refused` with -1 means that nothing is stored; any "
    "other end is an error. Made before the ADD it has no `incarnation`; made after it, it sets the start anew.",
    Kind.PERSIST: "A broker wrote its offsets to disk; level `store`. At level `client`, an instant: a broadcast "
    "client wrote the offset `value` of a lane into its own file.",
    Kind.PROGRESS: "What the store says that a group has reached in a lane, read by somebody who is not the client "
    "under test (`process` says who); level `store`. `value` is the offset of the next message that it would hand out "
    "after all that is finished; `refused` with -1 means that nothing is stored. It lasts from the question to the "
    "answer.",
    Kind.TRIM: "A broker removed the oldest messages of a queue, on purpose; level `store`. `value` is the offset of "
    "the first one that it keeps. It begins before anybody can see that they are gone: at the removal, and at a "
    "broker's start for every queue that does not begin at 0. Of a retry or dead-letter topic it names the `group`.",
    Kind.RESET: "An operator moved the offset of a lane to `value`. At level `client`: the broker left that to its "
    "clients, and this one was told to (`detail` says so); its commit follows.",
    Kind.DEAD_LETTER: "One try (`attempt`) to send a copy of a message to the dead letters. It names the lane, the "
    "offset and the id of the message itself.",
    Kind.SEND_BACK: "A concurrent consumer returned a message: it names the lane, the offset and the ids of the "
    "message itself, in `reconsume_times` the counter from which the copy is counted up, and in `delay_level` the "
    "level that the copy will wait for (below 0: the dead letters at once). Once it is acknowledged the message is "
    "finished in its own lane.",
    Kind.END_TRANSACTION: "A producer says how the transaction of the half message `message_id` ended: `value` is 8 "
    "for commit, 12 for rollback, 0 for unknown; mostly one way (`sent`). `view=check` when a broker had asked.",
    Kind.CHECK: "An instant: a producer was asked by a broker about a half message; `attempt` is how often it was "
    "asked about by then, as the broker says.",
    Kind.ASSIGN: "A client computed its share: `value` lanes of a topic, as seen with the members in `view`; `detail` "
    "names them, a `broker/queue` each.",
    Kind.ASSIGN: "A client computed its share of a topic: `value` lanes, in `detail` as `broker/queue`, in order. "
    "`view` is what it shared out: the members and the queues, each list in the order in which the client used it, as "
    "`alice bob | b0/0 b0/1`.",
    Kind.ADD: "An instant: an incarnation begins, and `value` is where. Whoever records ADD records every COMMIT too, "
    "or declares what it records.",
    Kind.DROP: "An instant: the incarnation ends. Calls of it may still be running.",
    Kind.JOIN: "A client starts; `view` is its subscription, where it is recorded.",
    Kind.LEAVE: "A client shuts down in good order, from the order to the end.",
    Kind.MEMBER: "A client asked who is in the group; `view` is the answer.",
    Kind.ROUTE: "A client asked which queues a topic has.",
    Kind.READ: "The drain. One row for each message found (`queue_offset`, `message_id`, for a copy `origin_id` as the "
    "producer's id of the message it was made from, `wall_us` = when the broker stored it), and for each queue one "
    "marker without offset and id that begins before the first read, asks for the queue's end no earlier, ends after "
    "the last read, and is `ok` when the queue was read to its end from offset 0, or from the minimum that its broker "
    "had announced (TRIM), with `value` = that end; "
    "`detail=settled` when before it all was healed, who had died was started again, and nothing happened for longer "
    "than anybody waits in a healthy system. Rows of a dead-letter or retry topic name its `group`, and as `view` the "
    "topic that the copy says it came from; a dead-letter topic that does not exist gets a marker with `value=0`.",
    Kind.CRASH: "An instant: a process died; `client_id` or `broker` says which. Where the broker is several nodes, of "
    "which one died, `value` says how many lived on. A broker that another version follows on its store ends in good "
    "order; then the row lasts until that one answers, and `view` is what both said of their versions.",
    Kind.PAUSE: "A process was stopped from begin to end; `client_id` or `broker` says which.",
    Kind.CLOCK_STEP: "An instant: a wall clock jumped by `value` ms. Lease clauses stop judging there.",
    Kind.FAULT: "The harness injected a fault (`detail`) at the begin and healed it at the end; `ok` when its effect "
    "was seen, else `refused`, which does not say that it had none: it excuses all the same. A detail that begins with "
    "`duplicate` and a blank says that frames came twice. A fault of a link names after its first word whom it "
    "concerns: both ends (`partition alice b0`), or one; nobody is everybody. It may hold requests back until it ends; "
    "`delay` with a number, by so many ms; `cut`, `lose` and `drop_next` hold nothing back.",
}

OUTCOMES: Mapping[Outcome, str] = {
    Outcome.OK: "it happened, and the answer says so",
    Outcome.REFUSED: "it did not happen, and the answer says so",
    Outcome.UNKNOWN: "no answer: it may have happened, now or later",
    Outcome.SENT: "one way: handed to the network",
    Outcome.SUCCESS: "the listener is done with the batch",
    Outcome.SUSPEND: "the listener wants the batch again",
    Outcome.COMMIT: "the listener commits all that was taken",
    Outcome.ROLLBACK: "the listener puts back all that was taken (manual), or is done with the batch (auto)",
    Outcome.NULL: "the listener returned nothing: as `suspend`",
    Outcome.THREW: "the listener threw: as `suspend`",
    Outcome.CUT: "a shutdown or a crash ended the listener call",
}

LEVELS: Mapping[Level, str] = {
    Level.CLIENT: "by the client library that did it",
    Level.WIRE: "on the wire, at one end of it: by a raw protocol client of the suite, or by our own broker of a "
    "client that does not tell its requests",
    Level.TAP: "by a proxy between client and broker",
    Level.STORE: "by the broker, or in its files",
}
