"""For mutants that answer OK and store nothing."""

from reference_impl.core.broker.log import BrokerStore, Draft
from reference_impl.protocol.message import StoredMessage


def as_if_stored(store: BrokerStore, draft: Draft, now_ms: int, host: str) -> StoredMessage:
    """The message as an append would have returned it; the next append gets the same offset."""
    return StoredMessage(
        draft.topic,
        draft.queue_id,
        store.queue(draft.topic, draft.queue_id).max_offset,
        store.end,
        draft.body,
        draft.properties,
        born_ms=draft.born_ms,
        store_ms=now_ms,
        store_host=host,
        reconsume_times=draft.reconsume_times,
    )
