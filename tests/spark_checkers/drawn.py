"""Draws small, dense, half-plausible histories: everything that a clause looks at, close together.

Not a test file; the tests of this folder import it by path (`conftest.py` puts it on the path).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from specs.history.row import Row, make_row
from specs.history.runinfo import RunInfo
from specs.plan.config import Config
from specs.vocabulary import Kind, Level, Outcome, dead_letter_topic, retry_topic

MS = 1000
CLIENTS = ("alice", "bob", "carol")
GROUPS = ("billing", "audit")

_CALL_ENDS = (
    Outcome.SUCCESS,
    Outcome.SUCCESS,
    Outcome.SUCCESS,
    Outcome.COMMIT,
    Outcome.SUSPEND,
    Outcome.SUSPEND,
    Outcome.NULL,
    Outcome.THREW,
    Outcome.ROLLBACK,
    Outcome.CUT,
)
_ANSWERS = (Outcome.OK, Outcome.OK, Outcome.OK, Outcome.REFUSED, Outcome.UNKNOWN)
_LANE_VERBS = (
    "call",
    "call",
    "call",
    "call",
    "next",
    "next",
    "next",
    "again",
    "again",
    "lock",
    "lock",
    "unlock",
    "commit",
    "commit",
    "commit",
    "add",
    "drop",
    "fetch",
    "dead",
    "dead",
    "pull",
    "send",
    "send",
    "reset",
    "rare",
    "run",
    "run",
)
_FOCUS = {
    "all": _LANE_VERBS,
    "shares": ("assign", "assign", "assign", "send", "next"),
    "sends": (
        "send",
        "send",
        "batch",
        "batch",
        "next",
        "next",
        "next",
        "call",
        "add",
        "reset",
        "rare",
    ),
    "leases": ("lock",) * 6 + ("unlock",) * 2 + ("call", "next", "commit", "rare"),
    "commits": (
        "unlock",
        "run",
        "next",
        "next",
        "commit",
        "commit",
        "commit",
        "add",
        "fetch",
        "send",
        "send",
        "drop",
        "dead",
        "pull",
        "handover",
    ),
    "handovers": ("handover", "handover", "run", "commit", "add", "rare"),
    "lanes": ("pull",) * 4
    + ("lock",) * 3
    + ("next",) * 4
    + ("again", "add", "unlock", "run", "rare"),
    "retries": ("call", "again", "again", "again", "next", "dead", "dead", "add", "run"),
}
_SIDE_BY_SIDE = (
    *(
        "call",
        "next",
        "next",
        "again",
        "again",
        "run",
        "add",
        "add",
        "drop",
        "lock",
        "fetch",
        "dead",
        "send",
        "reset",
    ),
    *(
        "commit",
        "commit",
        "commit",
        "back",
        "back",
        "back",
        "copy",
        "copy",
        "copy",
        "write",
        "write",
        "rare",
    ),
)
"""Verbs for groups that do not consume in the orderly mode."""
_RARE = (
    "crash",
    "broker-crash",
    "pause",
    "join",
    "leave",
    "step",
    "reset",
    "level",
    "trim",
    "trim",
)


def configs() -> st.SearchStrategy[Config]:
    return st.builds(
        Config,
        mode=st.sampled_from(("orderly", "orderly", "orderly", "concurrent", "key_ordered")),
        message_model=st.sampled_from(("clustering", "clustering", "clustering", "broadcasting")),
        broker_lease_ms=st.sampled_from((50, 200)),
        client_lease_ms=st.sampled_from((30, 100)),
        persist_ms=st.sampled_from((5, 20)),
        persist_first_ms=st.sampled_from((5, 20)),
        suspend_ms=st.sampled_from((10, 20)),
        continuous_ms=st.sampled_from((1, 20)),
        max_reconsume_times=st.sampled_from((-1, 0, 1, 2)),
        batch=st.sampled_from((1, 1, 1, 2)),
        consume_from=st.sampled_from(("first", "last")),
        dead_letter_bound_ms=st.sampled_from((5, 20)),
        delay_bound_ms=st.sampled_from((5, 20)),
        schedule_slack_ms=st.sampled_from((1, 10)),
        delay_levels=st.sampled_from(("0s 1s", "1s")),
        subscription=st.sampled_from(("*", "*", "*", "red")),
        transaction_check_max=st.sampled_from((1, 15)),
    )


@st.composite
def histories(draw: st.DrawFn, run: str = "drawn", most: int = 40) -> tuple[RunInfo, list[Row]]:
    """One run: (its description, rows by seq_begin)."""
    return _History(draw, run, most).make()


class _History:
    def __init__(self, draw: st.DrawFn, run: str, most: int) -> None:
        self.draw = draw
        self.info = RunInfo(run=run, config=draw(configs()), settles=True)
        if draw(st.integers(0, 9)) == 0:
            self.info = replace(self.info, closed_world=False)
        if draw(st.integers(0, 9)) == 0:
            self.info = replace(self.info, clock_bounds_us={"other": 5})
        self.rows: list[
            tuple[int, int | None, bool, dict[str, Any]]
        ] = []  # begin, end, instant, fields
        self.now = 0
        self.ops = 0
        self.most = most
        self.next: dict[tuple[str, str, int], int] = {}
        self.ended = 0
        self.sent: dict[int, int] = {0: 0, 1: 0}
        self.turn: dict[tuple[str, int], int] = {}
        self.manual = draw(st.booleans())
        config = self.info.config
        is_orderly = config.mode == "orderly" and config.message_model == "clustering"
        self.verbs = _FOCUS[draw(st.sampled_from(tuple(_FOCUS)))] if is_orderly else _SIDE_BY_SIDE
        self.queues = draw(st.integers(1, 2))
        self.groups = draw(st.integers(1, 2))
        self.tidy = draw(st.booleans())  # calls of a lane don't overlap
        self.dead: list[tuple[str, str]] = []

    def make(self) -> tuple[RunInfo, list[Row]]:
        for _ in range(self.draw(st.integers(1, self.most))):
            self._step()
        if self.draw(st.booleans()):
            self._drain()
        return self.info, self._numbered()

    # ---- steps

    def _pick(self, words: Any) -> Any:
        return self.draw(st.sampled_from(words))

    def _gap(self) -> None:
        self.now += self._pick((0, 1, MS, MS, 3 * MS, 9 * MS, 11 * MS, 25 * MS, 40 * MS))

    def _step(self) -> None:
        self._gap()
        verb = self._pick(self.verbs)
        queue = self._pick(range(self.queues))
        group = GROUPS[self._pick(range(self.groups))]
        client = self._pick(CLIENTS[:2] if self.tidy else CLIENTS)
        lane = {"group": group, "topic": "orders", "broker": "b0", "queue_id": queue}
        who = {"client_id": client, "process": client}
        turn = self.turn.setdefault((client, queue), 1)
        me = {**lane, **who, "incarnation": f"{client}#{turn}"}
        if self._pick(range(40)) == 0:
            me.pop("incarnation")
        place = (client, group, queue)
        match verb:
            case "call" | "next" | "again":
                self._call(verb, me, place)
            case "run":
                for _ in range(self.draw(st.integers(1, 6))):
                    self._call("next", me, place, plain=True)
            case "lock" | "unlock":
                outcome = self._pick(_ANSWERS)
                code = self._pick((None, 0, 1)) if outcome is Outcome.REFUSED else None
                mine = me if verb == "unlock" and self._pick((True, False)) else {**lane, **who}
                self._add(
                    Kind.LOCK if verb == "lock" else Kind.UNLOCK,
                    {**mine, "outcome": outcome, "code": code},
                )
            case "commit":
                value = max(0, self.next.get(place, 0) + self._pick((-2, -1, 0, 0, 0, 1)))
                outcome = self._pick((Outcome.SENT, Outcome.OK, Outcome.UNKNOWN))
                detail = "corrected" if self._pick(range(12)) == 0 else None
                self._add(Kind.COMMIT, {**me, "value": value, "outcome": outcome, "detail": detail})
            case "add":
                if self._pick(range(4)):
                    turn = self.turn[(client, queue)] = turn + 1
                    me["incarnation"] = f"{client}#{turn}"
                start = self._pick((None, 0, 0, 1, 2, self.next.get(place, 0)))
                self._add(Kind.ADD, {**me, "value": start}, length=0)
                if start is not None and self._pick(range(3)):
                    self.next[place] = start
            case "drop":
                self._add(Kind.DROP, me, length=0)
            case "fetch":
                fields = {**lane, **who} if self._pick(range(3)) else me
                outcome = self._pick((Outcome.OK, Outcome.OK, Outcome.REFUSED, Outcome.UNKNOWN))
                value = (
                    self._pick((0, 1, 2, -1, None))
                    if outcome is not Outcome.REFUSED
                    else self._pick((-1, -1, None))
                )
                self._add(Kind.FETCH_OFFSET, {**fields, "outcome": outcome, "value": value})
            case "dead":
                offset = max(0, self.next.get(place, 0) - self._pick((0, 1, 1, 2)))
                outcome = self._pick(
                    (Outcome.OK, Outcome.OK, Outcome.OK, Outcome.REFUSED, Outcome.UNKNOWN)
                )
                attempt = self._pick((None, 1, 1, 2))
                mode = self._pick((None, "auto", "manual")) if self.manual else None
                fields = {
                    "queue_offset": offset,
                    "message_id": f"m{queue}-{offset}",
                    "outcome": outcome,
                }
                self._add(
                    Kind.DEAD_LETTER,
                    {
                        **me,
                        **fields,
                        "attempt": attempt,
                        "commit_mode": mode,
                        "wall_us": self.now + 10**9,
                    },
                )
                self.dead.append((group, f"m{queue}-{offset}"))
            case "pull":
                at = self.next.get(place, 0)
                asked = max(0, at - self._pick((0, 0, 0, 1, 2)))
                self._add(
                    Kind.PULL, {**me, "outcome": Outcome.OK, "queue_offset": asked, "value": at + 2}
                )
            case "send":
                self._send(queue)
            case "back":
                self._send_back(me, self.next.get(place, 0))
            case "copy":
                self._copy(
                    {**me, "topic": retry_topic(group), "queue_id": 0}, self.next.get(place, 0)
                )
            case "write":
                value = max(0, self.next.get(place, 0) - self._pick((0, 0, 1)))
                self._add(Kind.PERSIST, {**me, "value": value, "outcome": Outcome.OK}, length=0)
            case "batch":
                self._send_batch(queue)
            case "assign":
                for each in CLIENTS[: self._pick((1, 2, 2, 3))]:
                    self._share(each, group)
            case "reset":
                if self._pick(range(6)) == 0:
                    self._add(Kind.RESET, {**lane, "outcome": Outcome.OK, "value": 0}, length=0)
            case "handover":
                self._handover(client, queue, lane, who)
            case _:
                self._rare(client, lane, me)

    def _handover(self, client: str, queue: int, lane: dict[str, Any], who: dict[str, Any]) -> None:
        """A client works on the lane and leaves it, more or less in good order; another one follows, or the same."""
        group = lane["group"]
        turn = self.turn[(client, queue)] = self.turn[(client, queue)] + 1
        me = {**lane, **who, "incarnation": f"{client}#{turn}"}
        place = (client, group, queue)
        first = self.next.get(place, 0)
        if self._pick(range(8)):
            self._add(Kind.ADD, {**me, "value": first}, length=0)
        for _ in range(self.draw(st.integers(1, 4))):
            self._call(
                self._pick(("next", "next", "next", "again")),
                me,
                place,
                plain=self._pick((True, True, False)),
            )
            if self._pick(range(3)) == 0:
                value = self._pick((first, first + 1, self.next[place]))
                detail = "corrected" if self._pick(range(8)) == 0 else None
                self._add(
                    Kind.COMMIT,
                    {**me, "value": value, "outcome": Outcome.SENT, "detail": detail},
                    length=0,
                )
        self.now = max(self.now, self.ended)
        if self._pick(range(8)):
            self._add(Kind.DROP, me, length=0)
        outcome = self._pick((Outcome.SENT, Outcome.SENT, Outcome.OK, Outcome.UNKNOWN))
        self._add(Kind.UNLOCK, {**lane, **who, "outcome": outcome}, length=0)
        other = self._pick(CLIENTS[:2])
        turn = self.turn[(other, queue)] = self.turn.setdefault((other, queue), 1) + 1
        heir = {**lane, "client_id": other, "process": other, "incarnation": f"{other}#{turn}"}
        self.next[(other, group, queue)] = first + self._pick((0, 0, 1, 2))
        if self._pick(range(4)):
            self._add(Kind.ADD, {**heir, "value": self.next[(other, group, queue)]}, length=0)
        self._call("next", heir, (other, group, queue), plain=True)

    def _call(
        self, verb: str, me: dict[str, Any], place: tuple[str, str, int], *, plain: bool = False
    ) -> None:
        if self.tidy:
            self.now = max(self.now, self.ended)
        at = self.next.get(place, 0)
        if verb == "call" and not plain:
            at = max(0, at + self._pick((-2, -1, 0, 1, 2)))
        elif verb == "again":
            at = max(0, at - 1)
        size = self._pick((1, 1, 1, 2)) if self.info.config.batch > 1 or not self.tidy else 1
        outcome = Outcome.SUCCESS if plain else self._pick(_CALL_ENDS)
        mode = None
        if self.manual:
            mode = "manual" if plain or self._pick(range(3)) else "auto"
            if plain and self._pick(range(3)) == 0:
                outcome = Outcome.COMMIT
        times = 0 if plain else self._pick((0, 0, 1, 1, 2, 3, None))
        suspends = outcome in (Outcome.SUSPEND, Outcome.NULL, Outcome.THREW, Outcome.ROLLBACK)
        suspend = self._pick((None, 5, 10, 20)) if suspends else None
        queue = place[2]
        rows = [
            {
                **me,
                "queue_offset": None if self._pick(range(60)) == 0 else at + index,
                "message_id": f"m{queue}-{at + index}",
                "sharding_key": f"k{(at + index) % 2}",
                "key_seq": self._pick(range(4)) if self._pick(range(8)) == 0 else (at + index) // 2,
                "reconsume_times": times,
                "commit_mode": mode,
                "outcome": outcome,
                "suspend_ms": suspend,
                **self._content(),
            }
            for index in range(size)
        ]
        end = self._add(Kind.DELIVER, *rows, length=self._pick((0, MS, 2 * MS)) if plain else None)
        self.next[place] = at + size
        if end is not None:
            self.ended = max(self.ended, end)

    def _send_back(self, me: dict[str, Any], at: int) -> None:
        offset = max(0, at - self._pick((0, 1, 1, 2)))
        outcome = self._pick((Outcome.OK, Outcome.OK, Outcome.OK, Outcome.REFUSED, Outcome.UNKNOWN))
        fields = {
            "queue_offset": offset,
            "message_id": f"m{offset % 3}",
            "reconsume_times": self._pick((0, 0, 1, None)),
            "delay_level": self._pick((1, 1, 2, 3, -1, None)),
            "outcome": outcome,
        }
        self._add(Kind.SEND_BACK, {**me, **fields})

    def _copy(self, me: dict[str, Any], at: int) -> None:
        self.now += self._pick((0, 999, 1000, 1000, 2000)) * MS
        fields = {
            "queue_offset": at,
            "message_id": f"m{at % 3}",
            "origin_id": f"m{at % 3}",
            "reconsume_times": self._pick((1, 1, 2, 0, None)),
            "attempt": self._pick((1, 1, 1, 2, None)),
            "outcome": Outcome.SUCCESS,
        }
        self._add(Kind.DELIVER, {**me, **fields})

    def _send(self, queue: int) -> None:
        offset = max(0, self.sent[queue] - self._pick((0, 0, 0, 0, 0, 0, 1, 2)))
        outcome = self._pick((Outcome.OK, Outcome.OK, Outcome.OK, Outcome.REFUSED, Outcome.UNKNOWN))
        shop = self._pick(("shop", "shop", "shop", "till"))
        fields: dict[str, Any] = {
            "client_id": shop,
            "process": shop,
            "view": self._pick(
                ("java-hash b0/0 b0/1", "java-hash b0/0 b0/1", "java-hash b0/0", None)
            ),
            "topic": "orders",
            "broker": "b0",
            "queue_id": queue,
            "message_id": f"m{queue}-{offset}",
            "attempt": self._pick((1, 1, 1, 2)),
            "sharding_key": f"k{offset % 2}",
            "key_seq": offset // 2,
            "outcome": outcome,
            "code": self._pick(
                (14, 14, 1, None) if outcome is Outcome.REFUSED else (0, 0, 0, 10, None)
            ),
            **self._content(),
            "delay_level": self._pick((None, None, None, None, None, 0, -1, 1, 2, 9)),
        }
        if outcome is Outcome.OK or self._pick(range(3)) == 0:
            fields["queue_offset"] = offset
        elif self._pick(range(2)):
            fields.update(queue_id=None, broker=None)
        half = self._pick(range(10)) == 0
        if half:
            offset_there = fields.pop("queue_offset", None)
            fields.update(
                detail=self._pick(("half", "half, timeout", "halfway")), value=offset_there
            )
        self._add(Kind.SEND, fields)
        if half and self._pick((True, True, False)):
            asked = ("client_id", "process", "topic", "broker", "message_id")
            about = {name: fields.get(name) for name in asked}
            if self._pick((True, False)):
                times = self._pick((None, 1, 2, 16))
                self._add(Kind.CHECK, {**about, "attempt": times, "outcome": Outcome.OK}, length=0)
            ended = {
                "value": self._pick((0, 8, 8, 12, None)),
                "outcome": self._pick((Outcome.SENT, Outcome.OK)),
            }
            self._add(Kind.END_TRANSACTION, {**about, **ended})
        if self._pick(range(4)) == 0:
            again = {
                "attempt": self._pick((2, 2, 3)),
                "client_id": self._pick(("shop", "stall")),
                "queue_offset": None,
            }
            self._add(
                Kind.SEND,
                {**fields, **again, "outcome": self._pick((Outcome.REFUSED, Outcome.UNKNOWN))},
            )
        if self._pick(range(3)) == 0 and offset:  # a late try of an earlier message
            late = {
                "message_id": f"m{queue}-{offset - 2}",
                "key_seq": (offset - 2) // 2,
                "attempt": self._pick((2, 4)),
            }
            self._add(
                Kind.SEND,
                {**fields, **late, "queue_offset": offset + 50, "outcome": Outcome.OK, "code": 0},
            )
        self.sent[queue] += 1

    def _send_batch(self, queue: int) -> None:
        first, size = self.sent[queue], self._pick((1, 2, 2, 3))
        who = {
            "client_id": "shop",
            "process": "shop",
            "attempt": 1,
            "outcome": self._pick(_ANSWERS),
        }
        where = {"topic": "orders", "broker": "b0", "queue_id": queue, **who}
        rows = [
            {**where, "message_id": f"m{queue}-{first + n}", "value": n, **self._content()}
            for n in range(size)
        ]
        rows[0]["queue_offset"] = first
        self._add(Kind.SEND, *rows)
        self.sent[queue] += size

    def _content(self) -> dict[str, Any]:
        return {
            "body_hash": self._pick((None, 1, 1, 1, 1, 2)),
            "props_hash": self._pick((None, 1, 1, 1, 1, 2)),
            "tags": self._pick((None, None, None, "red", "red")),
        }

    def _rare(self, client: str, lane: dict[str, Any], me: dict[str, Any]) -> None:
        who = {"client_id": client, "process": client}
        match self._pick(_RARE):
            case "crash":
                self._add(Kind.CRASH, {**who, "outcome": Outcome.OK}, length=0)
            case "broker-crash":
                self._add(
                    Kind.CRASH, {"broker": "b0", "process": "b0", "outcome": Outcome.OK}, length=0
                )
            case "pause":
                self._add(Kind.PAUSE, {**who, "outcome": Outcome.OK})
            case "join":
                self._add(
                    Kind.JOIN,
                    {**who, "group": lane["group"], "view": "*", "outcome": Outcome.OK},
                    length=0,
                )
            case "leave":
                self._add(
                    Kind.LEAVE, {**who, "group": lane["group"], "outcome": Outcome.OK}, length=0
                )
            case "step":
                if self._pick(range(3)) == 0:
                    self._add(Kind.CLOCK_STEP, {**who, "outcome": Outcome.OK}, length=0)
            case "level":
                level = self._pick((Level.STORE, Level.TAP, Level.WIRE))
                self._add(Kind.COMMIT, {**me, "value": 0, "outcome": Outcome.OK, "level": level})
            case "trim":
                topic = self._pick(
                    (lane["topic"], lane["topic"], "orders", dead_letter_topic(lane["group"]))
                )
                queue = {
                    "topic": topic,
                    "broker": "b0",
                    "queue_id": self._pick((0, 0, 1)),
                    "level": Level.STORE,
                }
                said = {
                    "process": "b0",
                    "value": self._pick((0, 1, 2, 3, 5)),
                    "outcome": Outcome.OK,
                }
                self._add(Kind.TRIM, {**queue, **said}, length=0)
            case _:
                self._add(Kind.RESET, {**lane, "outcome": Outcome.OK, "value": 0}, length=0)

    def _share(self, client: str, group: str) -> None:
        """A client computes its share; now and then it sees another group, or nothing is known of what it saw."""
        members = self._pick(
            ("alice bob", "alice bob", "bob alice", "alice", "alice bob carol", "alice alice bob")
        )
        queues = self._pick(("b0/0 b0/1", "b0/0 b0/1", "b0/1 b0/0", "b0/0"))
        fields = {
            "client_id": client,
            "process": client,
            "group": group,
            "topic": self._pick(("orders", "orders", "orders", "bills")),
            "view": self._pick((*[f"{members} | {queues}"] * 4, members, None)),
            "detail": self._pick(("b0/0", "b0/1", "b0/0 b0/1", "", None)),
            "outcome": Outcome.OK,
        }
        self._add(Kind.ASSIGN, fields, length=0)

    def _drain(self) -> None:
        self.now += self._pick((0, 10 * MS, 30 * MS))
        for queue in range(self.queues):
            self._drain_queue({"topic": "orders", "broker": "b0", "queue_id": queue}, None, queue)
        for group in GROUPS[: self.groups]:
            for broker in ("b0", "b1")[: self._pick((1, 1, 2))]:
                where = {
                    "topic": dead_letter_topic(group),
                    "broker": broker,
                    "queue_id": 0,
                    "group": group,
                }
                self._drain_queue(where, group, 0)

    def _drain_queue(self, where: dict[str, Any], group: str | None, queue: int) -> None:
        who = {"client_id": "drain", "process": "drain", "level": Level.WIRE}
        found: list[tuple[str, str | None]] = []
        if group is None:
            found = [(f"m{queue}-{offset}", None) for offset in range(self.sent[queue] + 1)]
        else:
            for number, (its, message) in enumerate(self.dead):
                if its == group or self._pick(range(12)) == 0:
                    found.extend([(f"d{number}", message)] * self._pick((0, 1, 1, 1, 2)))
        begin, self.now = self.now, self.now + MS
        for offset, (message, origin) in enumerate(found):
            if self._pick(range(8)) == 0:
                continue
            if origin is not None and self._pick(range(6)) == 0:
                message, origin = origin, None
            fields = {
                **where,
                **who,
                "view": self._pick((None, "orders", "orders", "bills"))
                if group is not None
                else None,
                "queue_offset": offset + self._pick((0, 0, 0, 0, 0, 1)),
                "message_id": None if self._pick(range(20)) == 0 else message,
                "origin_id": origin,
                "sharding_key": f"k{offset % 2}",
                **self._content(),
                "outcome": Outcome.OK,
                "wall_us": 10**9 + self.now - self._pick((0, 10 * MS, 50 * MS, 100 * MS)),
            }
            self._add(Kind.READ, fields, length=self._pick((0, 0, 10)))
            self.now += 20
        outcome = self._pick((Outcome.OK, Outcome.OK, Outcome.OK, Outcome.OK, Outcome.REFUSED))
        value = len(found) - self._pick((0, 0, 0, 1))
        detail = "settled" if self._pick((True, True, False)) else None
        fields = {**where, **who, "outcome": outcome, "value": value, "detail": detail}
        if self._pick(range(12)):
            self.now += 10
            self.ops += 1
            self.rows.append(
                (begin, self.now, False, {**fields, "kind": Kind.READ, "op_id": self.ops})
            )

    # ---- rows

    def _add(self, kind: Kind, *rows: dict[str, Any], length: int | None = None) -> int | None:
        """Begin an operation now; its rows share its times. Returns when it ends."""
        self.ops += 1
        instant = length == 0 and self._pick((True, False))
        end: int | None = self.now + length if length is not None else None
        if length is None and self._pick(range(20)):
            end = self.now + self._pick((0, 1, MS, 4 * MS, 10 * MS, 30 * MS))
        for fields in rows:
            values = {"level": Level.CLIENT, **fields, "kind": kind, "op_id": self.ops}
            if end is None:
                values["outcome"] = Outcome.UNKNOWN
            self.rows.append((self.now, end, instant and end is not None, values))
        return end

    def _numbered(self) -> list[Row]:
        marks: list[tuple[int, int, int]] = []
        for index, (begin, end, instant, _fields) in enumerate(self.rows):
            marks.append((begin, 0, index))
            if end is not None and not instant:
                marks.append((end, 1, index))
        # Ends at the time of a begin come before it or after it; an operation's own end never before its begin.
        ends_first = self.draw(st.booleans())
        marks.sort(
            key=lambda m: (m[0], -m[1] if ends_first and self.rows[m[2]][0] < m[0] else m[1], m[2])
        )
        begun: dict[int, int] = {}
        ended: dict[int, int] = {}
        for seq, (_time, phase, index) in enumerate(marks, start=1):
            (ended if phase else begun)[index] = seq
        rows = [
            make_row(
                run=self.info.run,
                seq_begin=begun[index],
                seq_end=begun[index] if instant else ended.get(index),
                started_us=begin,
                ended_us=begin if instant else end,
                clock="virtual",
                **{"wall_us": begin + 10**9, **fields},
            )
            for index, (begin, end, instant, fields) in enumerate(self.rows)
        ]
        return sorted(rows, key=lambda row: row.seq_begin)
