"""What breaks ASG-4, planted in a history."""

from spark_checkers import places
from spark_checkers.changes import alter
from spark_checkers.planting import RECORDED, Changes, Trace, defect


@defect(**RECORDED)
def another_order(trace: Trace) -> Changes:
    """A member shares out in another order."""
    for mine, other in places.shared_alike(trace):
        members, bar, queues = mine.view.partition(" | ")
        turned = " ".join(reversed(queues.split()))
        if turned != queues:
            yield alter(mine, view=f"{members}{bar}{turned}").about(other)
