"""A broker's store on a disk, in RocketMQ's layout: what a crash leaves is a prefix of what was written."""

from reference_impl.core.broker.log import FlushMode
from reference_impl.storage.errors import DiskFailed, DiskFull, StoreDamaged, StoreInUse
from reference_impl.storage.real_disk import RealDisk
from reference_impl.storage.store import DiskStore, StoreOptions

__all__ = [
    "DiskFailed",
    "DiskFull",
    "DiskStore",
    "FlushMode",
    "RealDisk",
    "StoreDamaged",
    "StoreInUse",
    "StoreOptions",
]
