"""The clauses over histories of any size: how rows come together for them, layout, generator, benchmarks.

For users of Spark: `judge`, `read_history`, `write_history`, `schema` and `conform`; docs/spark-api.md shows them.
"""

from typing import Any

__all__ = ["conform", "judge", "read_history", "schema", "write_history"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    # Not imported before somebody asks: the generator and the engine `arrow` do without what a DataFrame needs.
    if name in __all__:
        from spark_checkers import frames

        return getattr(frames, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
