"""The page of the history: columns, conventions, notation."""

from __future__ import annotations

import inspect
from collections.abc import Collection

from specs.docs.conventions import CONVENTIONS, LEVELS, OUTCOMES
from specs.docs.tables import GENERATED, table
from specs.history import text as notation
from specs.history.columns import COLUMNS, HISTORY_VERSION
from specs.history.telling import CLIENT, MUST_TELL, OF_AN_INCARNATION
from specs.history.text import VERBS
from specs.vocabulary import SERVER_CONSUMER, Kind


def history_page() -> str:
    """`docs/history.md`: columns, conventions, notation."""
    verbs = {kind: verb for verb, kind in VERBS.items()}
    return "\n".join(
        [
            GENERATED,
            f"# History v{HISTORY_VERSION}",
            "",
            "A history is a folder: `run.json` (which run it was, see `specs/schemas/run.v2.json`), `journal/` (what "
            "recorders wrote while it went on), `history/` (the same as rows, Parquet or JSON lines), `verdict.json`,",
            "and `online.json` where a broker was asked over the wire: what its answers showed in the moment in which "
            "they came (`specs/schemas/online.v1.json`), which a judge of the folder takes for its own.",
            "`inorder check` also takes one file, or stdin: the text notation, JSON lines, or one Parquet table; or a "
            "folder with the rows themselves, as Spark leaves them (`part-*.parquet`, `*.json`, `*.jsonl`). A "
            "`run.json` in the folder is read; without one JSON lines and Parquet are an open world with the usual "
            "configuration, and the command says so.",
            "Parquet needs no mark of ours: columns in any order, those that nobody has anything for left out, other "
            "widths of whole numbers (pandas' numbers with a point too), `large_string`, dictionaries. A column that "
            "the table below does not have is refused, and so is a row without a required one; the text notation has "
            "defaults.",
            "One row is one operation, or one message of an operation that has several. Its begin and its end have "
            "places in one total order; an operation that never ended has no end and the outcome `unknown`.",
            "A call ends in three ways: it happened, it did not, or nobody can say.",
            "",
            "## Columns",
            "",
            table(
                ("column", "type", "meaning"),
                (
                    (
                        f"`{column.name}`",
                        column.type,
                        column.doc + (" Required." if column.required else ""),
                    )
                    for column in COLUMNS
                ),
            ),
            "## Kinds",
            "",
            table(
                ("kind", "in text", "what a row says"),
                ((f"`{kind}`", verbs.get(kind, "–"), said) for kind, said in CONVENTIONS.items()),
            ),
            "Who did it must be named (`client_id`) in rows of these kinds: "
            + _listed(MUST_TELL[CLIENT])
            + ", but for what a `store` shows. Of two rows by nobody none can tell whether one client did both, so a "
            "history that holds one can't be trusted (MET-1), and its verdict names the row. Where a "
            f"server keeps one consumer for a lane, from which all members are handed its messages, it is the client "
            f"(`{SERVER_CONSUMER}`) and the process is the member.",
            "",
            "Nor is a history trusted in which a row lacks what makes it one of its kind, unless it was refused, or is "
            "of a raw protocol client (`wire`): "
            + "; ".join(
                f"`{name}` in {_listed(kinds)}"
                for name, kinds in MUST_TELL.items()
                if name != CLIENT
            )
            + ". What a client does in a group names its incarnation always or never, in rows of these kinds: "
            + _listed(OF_AN_INCARNATION)
            + ". A dead letter or a commit of nobody's would be missed by whoever follows one of them.",
            "",
            "## Outcomes",
            "",
            table(
                ("outcome", "meaning"),
                ((f"`{outcome}`", said) for outcome, said in OUTCOMES.items()),
            ),
            "## Levels",
            "",
            table(("level", "seen"), ((f"`{level}`", said) for level, said in LEVELS.items())),
            "Clauses look at the levels `client`, `wire` and `tap`; one operation seen at two levels is not two "
            "operations, so a request is recorded at one of these: a tap leaves out what its client tells itself.",
            "",
            "## Text notation",
            "",
            "```",
            inspect.cleandoc(notation.__doc__ or ""),
            "```",
            "",
        ]
    )


def _listed(kinds: Collection[Kind]) -> str:
    return ", ".join(f"`{kind}`" for kind in CONVENTIONS if kind in kinds)
