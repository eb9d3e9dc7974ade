"""A case as text: what stands in the file, where, and how it is written back.

The first line is `# ` and the file's own path, the next ones say why the case is there, in a sentence; lines
`# mutant: NAME` name the known bugs that give other answers. Then come blocks with a blank line between them:
remarks (`# ...`), commands (a line each), `----`, the expected answer (may be empty).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from specs.errors import UsageError

MIDDLE = "----"
REMARK = "# "
MUTANT = "# mutant: "


class CaseError(UsageError):
    """A case that can't be read or played; the message begins with its file and line."""


@dataclass(frozen=True, slots=True)
class Line:
    """One command as it stands in the file. number: counted from 1."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """expected: the answer's lines; None when the block has no answer yet (no `----`)."""

    number: int
    remarks: tuple[str, ...]
    commands: tuple[Line, ...]
    expected: tuple[str, ...] | None

    def text_with(self, answer: Sequence[str]) -> str:
        return (
            "\n".join([*self.remarks, *(line.text for line in self.commands), MIDDLE, *answer])
            + "\n"
        )


@dataclass(frozen=True, slots=True)
class Case:
    """path: as it was opened. header: the first lines, as they stand. why: the sentence in them."""

    path: Path
    header: tuple[str, ...]
    why: str
    mutants: tuple[str, ...]
    blocks: tuple[Block, ...]

    @property
    def name(self) -> str:
        """Topic and name, as in `lease/stranger_cannot_unlock`."""
        return f"{self.path.parent.name}/{self.path.stem}"

    def text_with(self, answers: Sequence[Sequence[str]]) -> str:
        """The file's text with these answers, one for each block."""
        blocks = [
            block.text_with(answer) for block, answer in zip(self.blocks, answers, strict=True)
        ]
        return "\n".join(["\n".join(self.header) + "\n", *blocks])

    def at(self, line: int) -> str:
        """The place of a line, for an error."""
        return f"{self.path}:{line}"


def read_case(path: Path, *, unanswered: bool = False) -> Case:
    """The case in the file. unanswered: a block may lack its answer. Raises CaseError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CaseError(f"{path} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CaseError(f"{path} is not UTF-8 text, so it is no case") from error
    return parse_case(text, path, unanswered=unanswered)


def parse_case(text: str, path: Path, *, unanswered: bool = False) -> Case:
    """The case in the text of a file. Raises CaseError, with file and line."""
    first, *rest = _paragraphs(text)
    header, why, mutants = _header(first, path)
    blocks = tuple(_block(lines, path, unanswered) for lines in rest)
    if not blocks:
        raise CaseError(f"{path}:{len(header)}: the case says nothing after its first lines")
    return Case(path, header, why, mutants, blocks)


def _paragraphs(text: str) -> list[list[Line]]:
    """The text cut at its blank lines; at least one, maybe empty, paragraph."""
    found: list[list[Line]] = [[]]
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.rstrip()
        if line:
            found[-1].append(Line(number, line))
        elif found[-1]:
            found.append([])
    return found if found[-1] or len(found) == 1 else found[:-1]


def _header(lines: Sequence[Line], path: Path) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    place = "/".join(path.parts[-2:])
    if not lines or not lines[0].text.startswith(REMARK) or not lines[0].text.endswith(place):
        raise CaseError(
            f"{path}:1: the first line must be the file's own path: `# conformance/cases/{place}`"
        )
    for line in lines:
        if not line.text.startswith(REMARK):
            raise CaseError(
                f"{path}:{line.number}: a blank line must end the first lines, which begin with `# `"
            )
    mutants = tuple(
        line.text.removeprefix(MUTANT) for line in lines if line.text.startswith(MUTANT)
    )
    why = " ".join(
        line.text.removeprefix(REMARK) for line in lines[1:] if not line.text.startswith(MUTANT)
    )
    if not why:
        raise CaseError(
            f"{path}:2: the second line must say why the case is there: `# ` and a sentence"
        )
    return tuple(line.text for line in lines), why, mutants


def _block(lines: Sequence[Line], path: Path, unanswered: bool) -> Block:
    number = lines[0].number
    middle = next((index for index, line in enumerate(lines) if line.text == MIDDLE), None)
    if middle is None and not unanswered:
        raise CaseError(
            f"{path}:{number}: the block has no {MIDDLE} between its commands and their answer; "
            "`pytest --rewrite` writes both"
        )
    above = lines if middle is None else lines[:middle]
    remarks = tuple(line.text for line in above if line.text.startswith("#"))
    commands = tuple(line for line in above if not line.text.startswith("#"))
    if not commands:
        raise CaseError(f"{path}:{number}: the block has no command")
    if commands[: len(above) - len(remarks)] != tuple(above[len(remarks) :]):
        raise CaseError(f"{path}:{number}: remarks of a block stand above its commands")
    expected = None if middle is None else tuple(line.text for line in lines[middle + 1 :])
    return Block(number, remarks, commands, expected)
