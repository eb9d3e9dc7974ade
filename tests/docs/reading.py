"""How the tests read the pages: which there are, their headings, links, blocks and prose."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^( *)```([^\n`]*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def pages() -> list[Path]:
    """Every page that people read."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    """Its text without blocks and comments."""
    return _COMMENT.sub("", FENCE.sub("", page.read_text(encoding="utf-8")))


def links(page: Path) -> list[str]:
    """Where it leads to; what stands in code is no link."""
    return _LINK.findall(_SPAN.sub("``", prose(page)))


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors that a forge makes of a page's headings: a heading that was there before gets a number."""
    found: dict[str, int] = {}
    made: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = "".join(
            c if c.isalnum() or c in "-_" else "-" if c == " " else ""
            for c in words.strip().lower()
        )
        count = found.get(anchor, 0)
        found[anchor] = count + 1
        made.add(f"{anchor}-{count}" if count else anchor)
    return frozenset(made)
