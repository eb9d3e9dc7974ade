"""SVG by the standard library's XML writer: what every picture of ours is made of.

Rules:
- the same input gives the same bytes: numbers have one decimal, nothing depends on the time or on chance;
- colours stand as attributes, so that any viewer shows them, and only a dark scheme needs a style sheet;
- what a system named (clients, topics, keys) is text for the XML writer, and control characters are spelt out;
- each picture has a title and a description for whoever can't see it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

_SVG = "http://www.w3.org/2000/svg"
_BETWEEN = 22.0

INK, QUIET, LINE, PAPER = "#1b1f24", "#57606a", "#d0d7de", "#ffffff"
CALL, CALL_EDGE = "#cfe3f7", "#0b4f8a"
HELD, BROKEN, BESIDE = "#1a6b45", "#b3001b", "#8a5a00"
_DARK = (
    "@media (prefers-color-scheme:dark){"
    ".io-paper{fill:#14171c}.io-ink{fill:#e8eaed}.io-quiet{fill:#a9b1bb}"
    ".io-edge{stroke:#e8eaed}.io-line{stroke:#3a414b}"
    ".io-bar{stroke:#8cc4f5}.io-call{fill:#1d3f5e;stroke:#8cc4f5}.io-held{stroke:#6fd3a4}.io-held-text{fill:#6fd3a4}"
    ".io-broken{stroke:#ff8d96}.io-broken-text{fill:#ff8d96}"
    ".io-beside{stroke:#e3b95c}.io-beside-text{fill:#e3b95c}.io-dot{fill:#e3b95c}.io-hollow{fill:#14171c}"
    "}"
)
_UNSEEN = re.compile(
    "[^\t\n\u0020-\u007e\u00a0-\u061b\u061d-\u200d\u2010-\u2029\u202f-\u2065\u206a-\ud7ff"
    "\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


def plain(text: str) -> str:
    r"""Text that XML can hold and that nobody reads wrong: control characters, also those that turn the direction
    of writing, are spelt out as `\u202e`."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def short(text: str, most: int) -> str:
    text = plain(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def render(element: ElementTree.Element) -> str:
    """A file's text."""
    return ElementTree.tostring(element, encoding="unicode") + "\n"


def stacked(pictures: Sequence[ElementTree.Element]) -> ElementTree.Element:
    """Several pictures below each other, in one."""
    if len(pictures) == 1:
        return pictures[0]
    whole = root()
    y = width = 0.0
    for each in pictures:
        each.set("y", number(y))
        y += float(each.get("height", "0")) + _BETWEEN
        width = max(width, float(each.get("width", "0")))
        whole.append(each)
    size(whole, width, max(0.0, y - _BETWEEN))
    return whole


def root() -> ElementTree.Element:
    return ElementTree.Element(
        "svg",
        {
            "xmlns": _SVG,
            "font-family": "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace",
            "font-size": "12",
        },
    )


def begin(
    element: ElementTree.Element, key: str, title: str, told: str, width: float, height: float
) -> None:
    """What every picture has: its size, its words for whoever can't see it, patterns, paper."""
    size(element, width, height)
    element.set("role", "img")
    element.set("aria-labelledby", f"{key}-title {key}-desc")
    text_of(element, "title", title).set("id", f"{key}-title")
    text_of(element, "desc", told).set("id", f"{key}-desc")
    text_of(element, "style", _DARK)
    defs = add(element, "defs")
    for name, wide, tag, css, form in _PATTERNS:
        pattern = {"width": str(wide), "height": str(wide), "patternUnits": "userSpaceOnUse"}
        add(add(defs, "pattern", id=f"{key}-{name}", **pattern), tag, css, **form)
    add(element, "rect", "io-paper", x=0, y=0, width=width, height=height, fill=PAPER)


_PATTERNS: tuple[tuple[str, int, str, str, dict[str, str]], ...] = (
    ("held", 6, "path", "io-held", {"d": "M0 6 6 0", "stroke": HELD, "stroke-width": "1.6"}),
    ("hatch", 7, "path", "io-beside", {"d": "M0 0 7 7", "stroke": BESIDE, "stroke-width": "1.4"}),
    ("again", 5, "path", "io-edge", {"d": "M0 5V0", "stroke": INK, "stroke-width": "1.2"}),
    ("dots", 9, "circle", "io-dot", {"cx": "3", "cy": "3", "r": "1.1", "fill": BESIDE}),
)


def paint(key: str, name: str) -> str:
    """How a pattern is named where something is filled with it."""
    return f"url(#{key}-{name})"


def titled(parent: ElementTree.Element, title: str) -> ElementTree.Element:
    """What belongs together, with words that a pointer shows."""
    element = add(parent, "g")
    text_of(element, "title", title)
    return element


def size(element: ElementTree.Element, width: float, height: float) -> None:
    element.set("width", number(width))
    element.set("height", number(height))
    element.set("viewBox", f"0 0 {number(width)} {number(height)}")


def number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def add(
    parent: ElementTree.Element, tag: str, css: str = "", /, **attributes: float | str
) -> ElementTree.Element:
    told = {
        name: value if isinstance(value, str) else number(value)
        for name, value in attributes.items()
    }
    return ElementTree.SubElement(parent, tag, ({"class": css} if css else {}) | told)


def text_of(parent: ElementTree.Element, tag: str, text: str) -> ElementTree.Element:
    element = add(parent, tag)
    element.text = plain(text)
    return element


def write(
    parent: ElementTree.Element,
    x: float,
    y: float,
    text: str,
    css: str,
    fill: str,
    **attributes: str,
) -> None:
    element = add(parent, "text", css, x=x, y=y, fill=fill, **attributes)
    element.text = plain(text)


def line(
    parent: ElementTree.Element,
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    css: str,
    stroke: str,
    width: float = 1.0,
    **attributes: str,
) -> None:
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    style = {"stroke": stroke, "stroke-width": number(width), **attributes}
    add(parent, "line", css, **ends, **style)
