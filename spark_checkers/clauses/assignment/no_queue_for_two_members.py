"""What breaks ASG-1, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import Change, Given, alter
from spark_checkers.planting import RECORDED, defect, lookalike


@defect(places.shared_alike, where=lambda mine, other: other.detail, **RECORDED)
def taken_twice(mine: Given, other: Given) -> Change:
    """A member takes a queue that another one took."""
    share = f"{mine.detail} {other.detail.split()[0]}".strip()
    return alter(mine, detail=share).about(other)


@lookalike(places.shared_alike, where=lambda mine, other: other.detail, **RECORDED)
def seen_by_one_only(mine: Given, other: Given) -> Change:
    """A member sees somebody whom the others don't."""
    return alter(mine, view=f"newcomer {mine.view}", detail=other.detail)
