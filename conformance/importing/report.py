"""What an import says of itself, for people: what became of the lines, what was imported, and what that decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from conformance.importing.job import Report
from conformance.importing.mapping import Map, unread
from conformance.importing.reach import Decided
from specs.clauses.clause import ORDER
from specs.vocabulary import Kind


def report_text(report: Report, mapping: Map) -> str:
    """Lines without colours, for stdout."""
    parts = [
        [f"{report.written.total:,} rows from {report.lines:,} lines"],
        _lines(report, mapping),
        _kinds(report, mapping),
        _assumed(report),
        [f"What a judge can decide of what {report.profile} promises:"],
        _clauses(report),
        _blind(report),
        _wishes(report),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _lines(report: Report, mapping: Map) -> list[str]:
    """What did not become rows, and what is odd: each with its number."""
    told = report.told
    counted = [
        (report.bad, "bad lines passed over"),
        (
            report.unspoken,
            f"lines that no event of the map speaks of, first line {report.first_unspoken}",
        ),
        (report.noise, "lines not in the form that the map says (a stack trace, a banner)"),
        (
            report.long_texts,
            f"lines with a quoted text of more than ten lines, first line {report.first_long_text}: is a quote open?",
        ),
        (
            told.twice,
            "lines the same as another, byte for byte, left out: "
            + _some(told.twice, [f"{line} as {other}" for line, other in told.twice_shown]),
        ),
        *(
            (count, f"{kind} begun and never ended")
            for kind, count in sorted(told.never_ended.items())
        ),
        *(
            (count, f"{kind} ended that no line began {_why_unbegun(report, kind, count)}")
            for kind, count in sorted(told.without_begin.items())
        ),
        (told.ties, "events of one time: nothing is concluded from their order"),
    ]
    found = [
        f"{count:>9,}  {what if count > 1 else what.replace('lines', 'line', 1)}"
        for count, what in counted
        if count
    ]
    found += [
        f"           {each.log} has no column {', '.join(each.columns)}: empty in its lines"
        for each in report.lacking
    ]
    if told.gaps:
        found.append(
            f"           what rests on {', '.join(sorted(told.gaps))} is at most possible, since such lines are not in "
            "the history"
        )
    if told.twice and not report.sure_of_duplicates:
        found.append(
            '           if a line may come twice on its way: duplicates = "drop"; if each is an event: '
            'duplicates = "keep"'
        )
    if not mapping.timed:
        found.append("           the lines do not tell when: nothing that takes time is judged")
    elif told.reckoned_us:
        found.append(
            "           begins or ends were reckoned from lengths: nothing is concluded from what lies "
            "as close together as they may be off"
        )
    elif report.dropped:
        found.append(
            f"           times only to {told.resolution_us / 1e6:g} s: nothing is measured against config's "
            f"{', '.join(report.dropped)}"
        )
    if mapping.timed and told.earliest_us < _A_YEAR_US:
        found.append("           times of 1970: is the unit that of time_format?")
    if others := unread(mapping.config):
        found.append(f"           no clause asks for config's {', '.join(others)}")
    if told.newest_first:
        found.append("           the newest line comes first; the order of times was taken")
    return found


def _why_unbegun(report: Report, kind: str, count: int) -> str:
    told = report.told
    midst = told.in_the_midst.get(kind, 0)
    lines = _some(count, list(map(str, told.ends_shown[kind])))
    if not midst:
        return f"(the log begins late), {lines}"
    return f"({midst:,} after that client had begun others there: does a begin's line say the same?), {lines}"


def _some(count: int, shown: Sequence[str]) -> str:
    """The first line numbers, as many as are known of so many."""
    return f"line {', '.join(shown)}{', ...' if count > len(shown) else ''}"


def _kinds(report: Report, mapping: Map) -> list[str]:
    written = report.written
    rows = ["kind            rows  columns, with how many rows lack a value"]
    for kind, count in sorted(written.rows.items()):
        mapped = sorted(
            {name for event in mapping.event if event.kind == kind for name in event.columns}
        )
        values = written.values[kind]
        told = [
            name + (f" (-{count - values.get(name, 0):,})" if values.get(name, 0) < count else "")
            for name in mapped
        ]
        rows.append(f"{kind:<14}{count:>6,}  {', '.join(told)}".rstrip())
    for event, (name, seen) in zip(mapping.event, report.seen.items(), strict=True):
        if not seen and event.kind not in mapping.did_not_happen:
            rows.append(f"no line at all was {name}: is its `when` or `match` right?")
    declared = sorted({event.kind for event in mapping.event} & set(mapping.records or ()))
    rows += [
        f'{kind} counts as not told; if you know that there was none: did_not_happen = ["{kind}"]'
        for kind in declared
        if kind not in written.rows and kind not in mapping.did_not_happen
    ]
    return rows


def _assumed(report: Report) -> list[str]:
    if not report.assumed:
        return []
    return ["Because the map says so:", *(f"  {each}" for each in report.assumed)]


def _clauses(report: Report) -> list[str]:
    found: list[str] = []
    for decided in Decided:
        of_these = report.of(decided)
        if not of_these:
            continue
        found.append(f"{decided.value} ({len(of_these)})")
        if decided is Decided.YES:
            found += [f"  {each.id:<7}{each.title}" for each in of_these]
        elif decided is Decided.POSSIBLE:
            found += [f"  {each.id:<7}{each.title}: {each.why}" for each in of_these]
        else:
            by_reason: dict[str, list[str]] = {}
            for each in of_these:
                by_reason.setdefault(each.why, []).append(each.id)
            found += [f"  {why}: {', '.join(ids)}" for why, ids in by_reason.items()]
    return found


def _blind(report: Report) -> list[str]:
    """What a verdict that is upheld will not have looked at."""
    shown = (Decided.YES, Decided.POSSIBLE)
    found = []
    if not any(each.decided in shown for each in report.clauses if each.id.startswith(ORDER)):
        found.append("Of order nothing can be decided: a verdict of upheld says nothing about it.")
    if Kind.DELIVER in report.written.rows and Kind.SEND not in report.written.rows:
        found.append(
            "Sends are not told: a message that was passed over, and that nobody was given, is not missed."
        )
    return found


def _wishes(report: Report) -> list[str]:
    """What of the log's own silence keeps most clauses from being decided."""
    wanted: dict[str, set[str]] = {}
    for each in report.clauses:
        for kind in each.kinds:
            known = f' (or did_not_happen = ["{kind}"], where you know it)'
            # What was delivered was sent.
            may_not_have = each.decided is Decided.POSSIBLE and kind != Kind.SEND
            name = f"{kind} events{known if may_not_have else ''}"
            wanted.setdefault(name, set()).add(each.id)
        for name in each.columns:
            wanted.setdefault(name, set()).add(each.id)
        for name in each.settings:
            wanted.setdefault(f"config.{name}", set()).add(each.id)
    if not wanted:
        return []
    best = sorted(wanted.items(), key=lambda item: (-len(item[1]), item[0]))[:_BEST]
    return ["What would decide more:", *(f"  {name}: {_ids(ids)}" for name, ids in best)]


_BEST = 8
_A_YEAR_US = 365 * 86_400 * 1_000_000


def _ids(ids: Iterable[str]) -> str:
    found: Sequence[str] = sorted(ids)
    return ", ".join(found)
