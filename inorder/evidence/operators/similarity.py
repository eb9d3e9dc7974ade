"""How much the text of a judge and the text of its twin have in common.

Of each module only what judges is compared: no imports, docstrings, types, explanations or planted defects. Every name
is replaced by one word, every number and every text by another, so what is compared is how the two are built. Two
texts of Python always have something in common: beside each figure stands that of the judge and the twins of all other
clauses. A twin that is far above those looks as if it had been typed from its judge.
"""

from __future__ import annotations

import ast
import io
import keyword
import tokenize
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from statistics import median

from inorder.evidence.operators.pools import left_out, source_of
from spark_checkers.catalogue import clause_of, twin_modules
from specs.clauses.catalogue import get

GRAM = 5
"""Tokens that stand one after the other."""
HALF, FAR = 0.5, 0.15
"""A share of at least a half, so far above the highest that the judge has with a stranger's twin, is no accident."""
NAME, NUMBER, TEXT = "N", "0", "S"
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}


@dataclass(frozen=True, slots=True)
class Likeness:
    """Of a clause's two texts.

    tokens: of the judge and of the twin. shared: of the runs of `GRAM` tokens of both texts the share that both have;
    others, highest: the same with the twins of other clauses, in the middle and at most. ratio: difflib's, of all
    tokens.
    """

    clause: str
    tokens: tuple[int, int]
    shared: float
    others: float
    highest: float
    ratio: float

    @property
    def looks_typed(self) -> bool:
        return self.shared >= HALF and self.shared > self.highest + FAR


def likenesses() -> list[Likeness]:
    """Of every clause, in the catalogue's order."""
    twins = {clause_of(each): tokens_of(each.__name__) for each in twin_modules()}
    return [_likeness(clause, twins) for clause in twins]


def _likeness(clause: str, twins: dict[str, tuple[str, ...]]) -> Likeness:
    judge, twin = tokens_of(get(clause).module), twins[clause]
    strangers = [shared(judge, other) for name, other in twins.items() if name != clause]
    matcher = SequenceMatcher(None, judge, twin, autojunk=False)
    return Likeness(
        clause,
        (len(judge), len(twin)),
        shared(judge, twin),
        median(strangers),
        max(strangers),
        matcher.ratio(),
    )


def shared(one: Sequence[str], other: Sequence[str]) -> float:
    """Of the grams of both texts the share that both have."""
    first, second = _grams(tuple(one)), _grams(tuple(other))
    every = first.total() + second.total()
    return 2 * (first & second).total() / every if every else 0.0


@cache
def _grams(tokens: tuple[str, ...]) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[start:] for start in range(GRAM)), strict=False))


@cache
def tokens_of(module: str) -> tuple[str, ...]:
    """What judges in a module, as tokens without names."""
    tree = ast.parse(source_of(module).read_text(encoding="utf-8"))
    aside = left_out(module)
    body: list[ast.stmt] = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name not in aside
    ]
    text = ast.unparse(_Bare().visit(ast.Module(body, type_ignores=[])))
    return tuple(
        _plain(token)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in _LAYOUT
    )


def _plain(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NUMBER:
        return NUMBER
    if token.type == tokenize.STRING:
        return TEXT
    is_name = token.type == tokenize.NAME and not keyword.iskeyword(token.string)
    return NAME if is_name else token.string


class _Bare(ast.NodeTransformer):
    """Without docstrings, types and decorators."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.returns, node.decorator_list = None, []
        for each in ast.walk(node.args):
            if isinstance(each, ast.arg):
                each.annotation = None
        node.body = _without_docstring(node.body)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.generic_visit(node)
        node.decorator_list = []
        node.body = _without_docstring(node.body)
        return node


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    is_text = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    return (body[1:] if is_text else body) or [ast.Pass()]
