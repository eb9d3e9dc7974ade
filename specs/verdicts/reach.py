"""Which clauses a run's plans can't, or hardly, put at stake, and why: derived, from what each clause needs.

A run of conformance on sockets is given minutes, and no plan of it has everything. A clause below its floor that the
plans could not reach is *not claimed*, with the sentence that says what was lacking; one that they could have reached
stays *not exercised*.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from specs.clauses.catalogue import catalogue
from specs.clauses.clause import Promise
from specs.plan.plan import Plan
from specs.plan.traits import Stake, Trait, count


def out_of_reach(
    plans: Sequence[Plan],
    *,
    floor: int,
    beside: Collection[Trait] = (),
    clauses: Iterable[Promise] | None = None,
) -> Mapping[str, str]:
    """The clauses that a run of these plans does not, or hardly, put at stake, each with what is lacking.

    floor: the opportunities that are asked for. beside: traits that the run has though its plans do not say so, as
    when a raw client asks for this and that before they begin. clauses: all of the catalogue, if not said otherwise.
    """
    found: dict[str, str] = {}
    for clause in catalogue() if clauses is None else clauses:
        for stake in clause.stakes:
            why = None if stake.trait in beside else _lack(stake, plans, floor)
            if why is not None:
                found[clause.id] = why
                break
    return found


def _lack(stake: Stake, plans: Sequence[Plan], floor: int) -> str | None:
    times = sum(count(stake.trait, plan) for plan in plans)
    if not times:
        return f"such a run lacks {stake.trait}"
    if stake.brings is not None and times * stake.brings < floor:
        often = "once" if times == 1 else f"{times} times"
        return (
            f"such a run has {stake.trait} only {often}, and that brings about {stake.brings * times} "
            "opportunities"
        )
    return None
