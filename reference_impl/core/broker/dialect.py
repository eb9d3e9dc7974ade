"""What differs between the two lines of RocketMQ that the broker can speak, as one table.

Each line was measured against a real broker (4.9.7 and 5.4.0) or is read from its source; see docs/sources.md.
Codes are the protocol's response codes, as numbers, so that the table reads like the measurement.
"""

from __future__ import annotations

from dataclasses import dataclass

from specs.errors import UsageError


@dataclass(frozen=True, slots=True)
class Dialect:
    """One line's answers where the lines differ.

    bad_queue_id: a queue number beyond the topic's, in SEND and PULL.
    missing_field: an offset update without its queue or offset.
    commit_checks: an offset update for an unknown group answers 26, for an unknown topic 17; else 0 and stored.
    empty_queue_offset_is_zero: nothing stored and nothing in the queue yet: 0 (else 22, not found).
    zero_flag_is_read: `setZeroIfNotFound=false` makes every missing offset 22.
    exhausted_is_beyond_limit: a SEND to a retry topic is dead when its counter is > the limit (else >=).
    live_lock_diverts: while the group holds any live lock, a SEND to its retry topic goes to the dead letters.
    dead_letters_at_once: a diverted message loses its delay level (else it waits for it).
    server_side_reset: an operator's reset is kept by the broker until a pull takes it (5.2 and later; else the
        broker tells the group's clients, who move the offset).
    unique_key_is_added: a message without UNIQ_KEY gets one; it is also the answer's transactionId.
    topic_takes_offsets: a deleted topic takes along what groups had stored for it.
    heartbeat_ext: header fields of the answer to a heartbeat.
    """

    name: str
    bad_queue_id: int
    missing_field: int
    commit_checks: bool
    empty_queue_offset_is_zero: bool
    zero_flag_is_read: bool
    exhausted_is_beyond_limit: bool
    live_lock_diverts: bool
    dead_letters_at_once: bool
    server_side_reset: bool
    unique_key_is_added: bool
    topic_takes_offsets: bool
    heartbeat_ext: tuple[tuple[str, str], ...]


DIALECTS: dict[str, Dialect] = {
    "4.9": Dialect(
        name="4.9",
        bad_queue_id=1,
        missing_field=1,
        commit_checks=False,
        empty_queue_offset_is_zero=True,
        zero_flag_is_read=False,
        exhausted_is_beyond_limit=False,
        live_lock_diverts=False,
        dead_letters_at_once=False,
        server_side_reset=False,
        unique_key_is_added=False,
        topic_takes_offsets=False,
        heartbeat_ext=(),
    ),
    "5.x": Dialect(
        name="5.x",
        bad_queue_id=29,
        missing_field=29,
        commit_checks=True,
        empty_queue_offset_is_zero=False,
        zero_flag_is_read=True,
        exhausted_is_beyond_limit=True,
        live_lock_diverts=True,
        dead_letters_at_once=True,
        server_side_reset=True,
        unique_key_is_added=True,
        topic_takes_offsets=True,
        heartbeat_ext=(("IS_SUPPORT_HEART_BEAT_V2", "true"), ("IS_SUB_CHANGE", "true")),
    ),
}


def dialect(name: str) -> Dialect:
    """The dialect of that name. Raises UsageError for any other."""
    try:
        return DIALECTS[name]
    except KeyError:
        raise UsageError(f"unknown dialect {name!r}; known are {', '.join(DIALECTS)}") from None
