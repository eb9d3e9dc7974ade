"""The page of the glossary, made from `specs/glossary.toml`."""

from __future__ import annotations

from specs.docs.tables import GENERATED, table
from specs.glossary import words


def glossary_page() -> str:
    """Markdown: a table of all words."""
    return "\n".join(
        [
            GENERATED,
            "# Glossary",
            "",
            "The words that a report, a history or a clause uses, in the order in which you meet them.",
            "`inorder list words` prints them, and `report.html` explains them where it uses them.",
            "",
            table(("word", "meaning"), ((each.name, each.meaning) for each in words())),
        ]
    )
