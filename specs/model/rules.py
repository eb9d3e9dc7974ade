"""The wire rules: what a broker answers, one sentence each, as the wire machine checks them online.

A clause names the rules that are its facets (`RULES`): the same promise, seen in an exchange in the moment in which it
is answered; the rule's id stays valid as an alias of the clause. A rule that no clause names stands for itself in the
catalogue (`specs.clauses.catalogue.everything`): a code of an answer is no row of a history.
`dialect` names the entry of a profile's [wire] table on which the answer depends; rules without one are the same
in all versions.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WireRule:
    id: str
    title: str
    statement: str
    source: str
    dialect: str | None = None

    @property
    def name(self) -> str:
        """The title as a word, as a clause is named by its file."""
        return "_".join("".join(c if c.isalnum() else " " for c in self.title.lower()).split())


_ALL = (
    WireRule(
        "WIR-1",
        "lock answers the granted subset",
        "A lock request is always answered with success; the body names lanes that were asked for and no others.",
        "docs/sources.md#lock-table",
    ),
    WireRule(
        "WIR-2",
        "a free lane is granted",
        "A lane that is free, the asker's own, or expired is in the granted subset.",
        "docs/sources.md#lock-table",
    ),
    WireRule(
        "WIR-3",
        "a living lease is refused",
        "A lane whose lease lives at another client is not in the granted subset.",
        "docs/sources.md#lock-table",
    ),
    WireRule(
        "WIR-4",
        "unlock answers success",
        "An unlock request is answered with success, whoever asks.",
        "docs/sources.md#lock-table",
    ),
    WireRule(
        "WIR-5",
        "offsets are dense",
        "A stored message gets the queue's next offset.",
        "docs/sources.md#store",
    ),
    WireRule(
        "WIR-6",
        "send to a queue that is not there",
        "A send to a queue number beyond the topic's is refused with the version's code.",
        "docs/sources.md#send",
        dialect="queue_out_of_range_code",
    ),
    WireRule(
        "WIR-7",
        "a pull finds the messages at its offset",
        "A pull below the end answers the messages from its offset on, in order, as they were sent.",
        "docs/sources.md#store",
    ),
    WireRule(
        "WIR-8",
        "a pull at the end finds nothing",
        "A pull at the end of a queue answers 'not found' (19).",
        "docs/sources.md#store",
    ),
    WireRule(
        "WIR-9",
        "a pull beyond the end is corrected to the end",
        "A pull beyond the end answers 'offset moved' (21) and names the end as the next offset.",
        "docs/sources.md#store",
    ),
    WireRule(
        "WIR-10",
        "pull of a queue that is not there",
        "A pull of a queue number beyond the topic's is refused with the version's code.",
        "docs/sources.md#store",
        dialect="queue_out_of_range_code",
    ),
    WireRule(
        "WIR-11",
        "an unknown topic is said to be unknown",
        "A pull of a topic that does not exist answers 17.",
        "docs/sources.md#store",
    ),
    WireRule(
        "WIR-12",
        "a commit is accepted from anybody",
        "A commit of an existing group is accepted as it is, from anybody: it is neither fenced nor compared.",
        "docs/sources.md#offsets",
    ),
    WireRule(
        "WIR-13",
        "a fetch answers the last commit",
        "A fetch answers the last accepted commit of the group and queue.",
        "docs/sources.md#offsets",
    ),
    WireRule(
        "WIR-14",
        "a young queue starts at zero",
        "A fetch for a queue that holds its first message and has no stored offset answers 0.",
        "docs/sources.md#start-matrix",
    ),
    WireRule(
        "WIR-15",
        "an empty queue without a stored offset",
        "A fetch for an empty queue without a stored offset answers as the version does: 'not found' or 0.",
        "docs/sources.md#start-matrix",
        dialect="empty_queue_offset_query",
    ),
    WireRule(
        "WIR-16",
        "commit of an unknown group",
        "A commit of a group that does not exist answers as the version does.",
        "docs/sources.md#offsets",
        dialect="commit_unknown_group_code",
    ),
    WireRule(
        "WIR-17",
        "commit to an unknown topic",
        "A commit to a topic that does not exist answers as the version does.",
        "docs/sources.md#offsets",
        dialect="commit_unknown_topic_code",
    ),
    WireRule(
        "WIR-18",
        "the member list names the connected members",
        "The member list holds one entry per connection that sent a heartbeat for the group; without any the "
        "answer is an error (1), not an empty list.",
        "docs/sources.md#membership",
    ),
    WireRule(
        "WIR-19",
        "a new member is announced to all",
        "When a member joins, a change notice reaches every member, the new one too.",
        "docs/sources.md#membership",
    ),
    WireRule(
        "WIR-20",
        "a send to the retry topic under a living lock",
        "A send to a group's retry topic while the group holds a living lock is stored in the dead letters "
        "(5.1.1 and later) or in the retry topic (before).",
        "docs/sources.md#dead-letters",
        dialect="retry_send_diverts_under_live_lock",
    ),
    WireRule(
        "WIR-21",
        "an unknown request is said to be unknown",
        "A request code that no broker knows is answered with 3.",
        "docs/sources.md#send",
    ),
    WireRule(
        "WIR-22",
        "the maximum offset is the next message's",
        "The maximum offset of a queue is the offset that its next message gets.",
        "docs/sources.md#store",
    ),
    WireRule(
        "WIR-23",
        "a batch is granted in part",
        "A lock request for several lanes, some of which another holds, is granted exactly the others.",
        "docs/sources.md#lock-table",
    ),
    WireRule(
        "WIR-24",
        "lanes that differ in one part are two lanes",
        "A lane is told by group, topic, broker name and queue: one that differs in one of them is locked and freed "
        "for itself.",
        "docs/sources.md#lock-table",
    ),
)

RULES: dict[str, WireRule] = {rule.id: rule for rule in _ALL}
