"""Six clauses in plain SQL, for `python -m spark_checkers.bench --duckdb`: what a good database needs for the like.

Each counts what breaks the statement, and knows nothing of premises, excuses, evidence or how often a clause was at
stake: less work than the judges do. `rows` is the history, as its Parquet files hold it.
"""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from specs.errors import Unavailable

_QUEUE = "run, topic, broker, queue_id"
_LANE = f'{_QUEUE}, "group"'
_WORK = f"{_LANE}, client_id, incarnation"
_BEFORE = "rows between unbounded preceding and 1 preceding"

FIRST_DELIVERIES_ASCEND = f"""
select count(*) from (
    select
        queue_offset,
        max(queue_offset) over (partition by {_WORK} order by seq_begin {_BEFORE}) as highest,
        row_number() over (partition by {_WORK}, queue_offset order by seq_begin) as time
    from rows
    where kind = 'deliver' and queue_offset is not null and incarnation is not null
)
where time = 1 and queue_offset < highest
"""

READERS_SEE_THE_SAME = f"""
select count(*) from (
    select 1 from rows
    where kind in ('read', 'deliver') and message_id is not null and queue_offset is not null
    group by {_QUEUE}, broker_epoch, queue_offset
    having count(distinct message_id) > 1
)
"""

ACKNOWLEDGED_SENDS_ASCEND = f"""
with sent as (
    select {_QUEUE}, seq_begin, seq_end, queue_offset from rows
    where kind = 'send' and outcome = 'ok' and queue_offset is not null and seq_end is not null
),
reached as (
    select {_QUEUE}, seq_end, max(queue_offset) over (partition by {_QUEUE} order by seq_end) as highest
    from sent
)
select count(*)
from sent asof join reached
    on sent.run = reached.run and sent.topic = reached.topic and sent.broker = reached.broker
    and sent.queue_id = reached.queue_id and sent.seq_begin > reached.seq_end
where sent.queue_offset < reached.highest
"""

COMMITS_NEVER_GO_BACK = f"""
with commits as (
    select {_WORK}, seq_begin, coalesce(seq_end, seq_begin) as seq_end, value from rows
    where kind = 'commit' and outcome in ('ok', 'sent') and value is not null and incarnation is not null
),
reached as (
    select {_WORK}, seq_end, max(value) over (partition by {_WORK} order by seq_end) as highest from commits
)
select count(*)
from commits asof join reached
    on commits.run = reached.run and commits.topic = reached.topic and commits.broker = reached.broker
    and commits.queue_id = reached.queue_id and commits."group" = reached."group"
    and commits.client_id = reached.client_id and commits.incarnation = reached.incarnation
    and commits.seq_begin > reached.seq_end
where commits.value < reached.highest
"""

NOTHING_IS_INVENTED = """
select count(*)
from (
    select run, topic, message_id from rows
    where kind in ('read', 'deliver') and message_id is not null and not starts_with(topic, '%')
) as seen
anti join (select run, topic, message_id from rows where kind = 'send') as sent
    using (run, topic, message_id)
"""

ONE_OWNER_AT_A_TIME = f"""
select count(*) from (
    select
        kind, client_id, started_us,
        lag(kind) over lane as before, lag(client_id) over lane as holder, lag(started_us) over lane as since_us
    from rows
    where kind in ('lock', 'unlock') and outcome = 'ok'
    window lane as (partition by {_LANE} order by seq_end)
)
where kind = 'lock' and before = 'lock' and client_id <> holder and started_us <= since_us + $lease_us
"""

CLAUSES: Mapping[str, str] = {
    "ORD-2": FIRST_DELIVERIES_ASCEND,
    "ORD-7": READERS_SEE_THE_SAME,
    "ORD-9": ACKNOWLEDGED_SENDS_ASCEND,
    "CMT-4": COMMITS_NEVER_GO_BACK,
    "SND-2": NOTHING_IS_INVENTED,
    "LSE-1": ONE_OWNER_AT_A_TIME,
}


class InDuckDB:
    """DuckDB on a history's files. Raises Unavailable where there is none."""

    def __init__(self, paths: Sequence[Path], lease_us: int, threads: int) -> None:
        try:
            duckdb = importlib.import_module("duckdb")
        except ImportError as error:
            raise Unavailable("DuckDB is not here: `pip install duckdb`") from error
        self._lease_us = lease_us
        self._connection: Any = duckdb.connect(config={"threads": threads})
        files = ", ".join(f"'{path}'" for path in paths)
        self._connection.execute(f"create view rows as select * from read_parquet([{files}])")

    def violations(self, clause: str) -> int:
        """How many a clause's SQL counts."""
        text = CLAUSES[clause]
        given = {"lease_us": self._lease_us} if "$lease_us" in text else {}
        (count,) = self._connection.execute(text, given).fetchone()
        return int(count)
