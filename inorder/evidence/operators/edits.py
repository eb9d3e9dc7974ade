"""One operator of a module changed: every place where that can be done, and the tree that comes of it.

An operator is what a slip of the pen takes for another one: a comparison, `and` for `or`, a `not`, a sign, a bound by
one, the smaller for the larger, any for all, numpy's and Arrow's functions of the same kind, an early way out.
What is no judgement is left alone: types, decorators, docstrings, what a message says.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from inorder.evidence.planted import COMPARISONS

Edit = Callable[[ast.AST], None]


class Operator(StrEnum):
    """What is changed."""

    COMPARISON = "comparison"
    AND_OR = "and/or"
    NOT = "not"
    PLUS_MINUS = "plus/minus"
    CONSTANT = "constant"
    FUNCTION = "function"
    WAY_OUT = "way out"


FUNCTIONS: Mapping[str, str] = {
    **{
        name: other
        for pair in (("min", "max"), ("any", "all"))
        for name, other in (pair, pair[::-1])
    },
    "minimum": "maximum",
    "maximum": "minimum",
    "argmin": "argmax",
    "argmax": "argmin",
    "and_": "or_",
    "or_": "and_",
    "logical_and": "logical_or",
    "logical_or": "logical_and",
    "less": "less_equal",
    "less_equal": "less",
    "greater": "greater_equal",
    "greater_equal": "greater",
    "equal": "not_equal",
    "not_equal": "equal",
    "union1d": "intersect1d",
    "intersect1d": "union1d",
    "bisect_left": "bisect_right",
    "bisect_right": "bisect_left",
}
"""Functions and methods, and the one of the same kind that a slip makes of each."""
SIDES = {"left": "right", "right": "left"}
_SEARCHES = "searchsorted"


@dataclass(frozen=True, slots=True)
class Change:
    """One changed operator. node, variant: which node of the module's tree, and which of its changes. was, becomes: the
    statement before and after, without what it holds."""

    module: str
    node: int
    variant: int
    function: str
    line: int
    operator: str
    was: str
    becomes: str

    @property
    def place(self) -> tuple[str, str, str, str]:
        """What names the change although lines move."""
        return (self.module, self.function, self.was, self.becomes)

    def __str__(self) -> str:
        return (
            f"{self.module}:{self.line} in {self.function}: `{self.was}` becomes `{self.becomes}`"
        )


@dataclass(frozen=True, slots=True)
class Place:
    """A node that can be changed. number: in `ast.walk`; owner: the number of the statement, or case, it belongs to."""

    number: int
    owner: int
    function: str
    variants: int


def places(source: str, left_out: Collection[str] = ()) -> list[Place]:
    """Every node of a module that can be changed. left_out: functions and classes, by their qualified names, and
    constants of the module.
    """
    tree = ast.parse(source)
    numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
    return [
        Place(numbers[id(node)], numbers[id(owner)], function, count)
        for node, owner, function in _judging(tree, tree, "", frozenset(left_out))
        if (count := len(list(_edits(node))))
    ]


def changed(source: str, module: str, place: Place, variant: int) -> tuple[Change, ast.Module]:
    """The change, and the module's tree with it."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    was = _text(nodes[place.owner])
    operator, edit = list(_edits(nodes[place.number]))[variant]
    line = getattr(nodes[place.number], "lineno", 0)
    edit(nodes[place.number])
    becomes = _text(nodes[place.owner])
    function = place.function or "(module)"
    change = Change(module, place.number, variant, function, line, operator.value, was, becomes)
    return change, ast.fix_missing_locations(tree)


def again(source: str, change: Change) -> ast.Module:
    """The module's tree with a change that is known. Raises ValueError where the source is another one."""
    tree = ast.parse(source)
    node = list(ast.walk(tree))[change.node]
    edits = list(_edits(node))
    if change.variant >= len(edits) or getattr(node, "lineno", 0) != change.line:
        raise ValueError(f"there is no such place any more: {change}")
    edits[change.variant][1](node)
    return ast.fix_missing_locations(tree)


# ------------------------------------------------------------------------------------------ where


def _judging(
    node: ast.AST, owner: ast.AST, function: str, left_out: frozenset[str]
) -> Iterator[tuple[ast.AST, ast.AST, str]]:
    """The nodes below that judge, each with the statement that it belongs to and the function around it."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params") or _is_message(
            node, name
        ):
            continue
        for child in value if isinstance(value, list) else (value,):
            if not isinstance(child, ast.AST) or _is_quoted(child):
                continue
            inner = function
            if not function and _assigned(child) & left_out:
                continue
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner = f"{function}.{child.name}".lstrip(".")
                if inner in left_out:
                    continue
            mine = child if isinstance(child, ast.stmt | ast.match_case) else owner
            if not _is_last_way_out(child, node):
                yield child, mine, inner
            yield from _judging(child, mine, inner, left_out)


def _assigned(node: ast.AST) -> set[str]:
    """The names to which a statement assigns something."""
    targets = node.targets if isinstance(node, ast.Assign) else ()
    return {each.id for each in targets if isinstance(each, ast.Name)}


def _is_message(node: ast.AST, field: str) -> bool:
    """What an error says, whether `zip` checks lengths, and which types something is asked for, decide nothing."""
    if isinstance(node, ast.Raise):
        return True
    if isinstance(node, ast.keyword) and node.arg in ("strict", "kw_only"):
        return True
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("isinstance", "issubclass", "TypeVar")
        and field == "args"
    )


def _is_quoted(node: ast.AST) -> bool:
    """Text for people, or a type that is spelled as a value (`Row | None`)."""
    if isinstance(node, ast.JoinedStr):
        return True
    parts = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
    return any(isinstance(part, ast.Constant) and part.value is None for part in parts)


def _is_last_way_out(node: ast.AST, parent: ast.AST) -> bool:
    """A function's own last return is no early one."""
    return isinstance(node, ast.Return) and isinstance(parent, ast.FunctionDef)


def _text(node: ast.AST) -> str:
    """A statement on one line, without what it holds."""
    if isinstance(node, ast.match_case):
        guard = f" if {ast.unparse(node.guard)}" if node.guard is not None else ""
        return f"case {ast.unparse(node.pattern)}{guard}:"
    if isinstance(node, ast.Module):
        return ""
    lines = ast.unparse(node).splitlines()
    if isinstance(getattr(node, "body", None), list):
        return next(line for line in lines if not line.startswith("@"))
    return " ".join(" ".join(lines).split())


# ------------------------------------------------------------------------------------------ the operators


def _edits(node: ast.AST) -> Iterator[tuple[Operator, Edit]]:
    """What can be done to the node itself."""
    match node:
        case ast.Compare(ops=ops):
            for index, op in enumerate(ops):
                for other in COMPARISONS.get(type(op), ()):
                    yield Operator.COMPARISON, _item("ops", index, other)
        case ast.BoolOp(op=op):
            yield Operator.AND_OR, _set("op", ast.Or if isinstance(op, ast.And) else ast.And)
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in _SIGNS:
            yield _SIGNS[type(op)][0], _set("op", _SIGNS[type(op)][1])
        case ast.UnaryOp(op=ast.Not() | ast.Invert()):
            yield Operator.NOT, _without_not
        case ast.If() | ast.While() | ast.IfExp() if _is_plain(node.test):
            yield Operator.NOT, _turned
        case ast.comprehension(ifs=ifs):
            for index, test in enumerate(ifs):
                if _is_plain(test):
                    yield Operator.NOT, _turned_filter(index)
        case ast.Constant(value=bool() as value):
            yield Operator.CONSTANT, _set_value(not value)
        case ast.Constant(value=int() as number):
            yield Operator.CONSTANT, _set_value(number + 1)
            yield Operator.CONSTANT, _set_value(number - 1)
        case ast.Name(id=name, ctx=ast.Load()) if name in FUNCTIONS:
            yield Operator.FUNCTION, _named("id", FUNCTIONS[name])
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in FUNCTIONS:
            yield Operator.FUNCTION, _named("attr", FUNCTIONS[name])
        case ast.Call(func=ast.Attribute(attr=name)) if name == _SEARCHES:
            yield Operator.FUNCTION, _other_side
        case ast.Continue() | ast.Break() | ast.Return():
            yield Operator.WAY_OUT, _passed
        case _:
            pass


_SIGNS: Mapping[type[ast.operator], tuple[Operator, type[ast.operator]]] = {
    ast.Add: (Operator.PLUS_MINUS, ast.Sub),
    ast.Sub: (Operator.PLUS_MINUS, ast.Add),
    ast.BitAnd: (Operator.AND_OR, ast.BitOr),
    ast.BitOr: (Operator.AND_OR, ast.BitAnd),
}


def _is_plain(test: ast.expr) -> bool:
    """A condition that no other operator of ours turns around."""
    return isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.NamedExpr)


def _set(field: str, other: type[ast.AST]) -> Edit:
    return lambda node: setattr(node, field, other())


def _set_value(value: object) -> Edit:
    return lambda node: setattr(node, "value", value)


def _named(field: str, name: str) -> Edit:
    return lambda node: setattr(node, field, name)


def _item(field: str, index: int, other: type[ast.AST]) -> Edit:
    return lambda node: getattr(node, field).__setitem__(index, other())


def _turned(node: ast.AST) -> None:
    node.test = ast.UnaryOp(ast.Not(), node.test)  # type: ignore[attr-defined]


def _turned_filter(index: int) -> Edit:
    def edit(node: ast.AST) -> None:
        ifs: list[ast.expr] = node.ifs  # type: ignore[attr-defined]
        ifs[index] = ast.UnaryOp(ast.Not(), ifs[index])

    return edit


def _without_not(node: ast.AST) -> None:
    """By another one before it, as the node itself stays."""
    assert isinstance(node, ast.UnaryOp)
    if isinstance(node.op, ast.Not):
        node.operand = ast.UnaryOp(ast.Not(), node.operand)
    else:
        node.operand = ast.UnaryOp(ast.Invert(), node.operand)


def _other_side(node: ast.AST) -> None:
    assert isinstance(node, ast.Call)
    named = [each for each in node.keywords if each.arg == "side"]
    if not named and len(node.args) < 3:
        node.keywords.append(ast.keyword("side", ast.Constant("right")))
    for each in named:
        each.value = _swapped(each.value)
    node.args[2:3] = [_swapped(side) for side in node.args[2:3]]


def _swapped(side: ast.expr) -> ast.expr:
    """The other one; of a name the one that it does not say."""
    if isinstance(side, ast.Constant):
        return ast.Constant(SIDES[str(side.value)])
    sides = {ast.Constant(each): ast.Constant(other) for each, other in SIDES.items()}
    return ast.Subscript(ast.Dict(list(sides), list(sides.values())), side)


def _passed(node: ast.AST) -> None:
    """The way out is gone: a statement without effect stands there."""
    node.__class__ = ast.Pass
