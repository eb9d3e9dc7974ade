"""Consumers are made of parts, and a mutant replaces one of them."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil

import pytest

from reference_impl.core import consumer as package
from reference_impl.core.consumer import (
    BroadcastConsumer,
    ConcurrentConsumer,
    Consumer,
    ConsumerConfig,
    KeyOrderedConsumer,
    OrderlyConsumer,
)
from reference_impl.core.consumer.part import Part
from reference_impl.mutants import every_mutant

MODES = (OrderlyConsumer, KeyOrderedConsumer, ConcurrentConsumer, BroadcastConsumer)
"""In the order of the table's columns."""
MUTANTS = {mutant.name: mutant.consumer for mutant in every_mutant() if mutant.consumer}
ONLY_CONFIGURED = {"same-client-id"}
"""Whose bug is in the configuration, and not in a part."""
ANCESTORS_MAX = 2


def classes() -> list[type]:
    """All that the package defines."""
    modules = [
        importlib.import_module(f"{package.__name__}.{entry.name}")
        for entry in pkgutil.iter_modules(package.__path__)
    ]
    return [
        each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type) and each.__module__ == module.__name__
    ]


def test_no_class_has_more_than_two_ancestors() -> None:
    """A rule is found in one file, and not in a chain of them."""
    deep = {
        each.__name__
        for each in classes()
        if sum(base.__module__.startswith(package.__name__) for base in each.__mro__[1:])
        > ANCESTORS_MAX
    }
    assert deep == set()


def test_the_table_of_parts_says_what_the_modes_are_made_of() -> None:
    """The docstring of the package, row by row."""
    told = {row[0]: row[2:] for row in table() if len(row) > 2}
    made = [vars(mode(ConsumerConfig("c", "g", {}, ("ns",)))) for mode in MODES]
    names = {name for each in made for name, part in each.items() if isinstance(part, Part)}
    assert told == {
        name: [type(each[name]).__name__ if name in each else "–" for each in made]
        for name in names
    }


def test_a_part_asks_the_parts_that_the_table_names() -> None:
    """What the source of its class says of its consumer's parts; the others ask none."""
    names = {row[0] for row in table() if len(row) > 2}
    asked = {
        each.__name__: asks & names
        for each in classes()
        if issubclass(each, Part) and (asks := asked_of_the_consumer(each)) & names
    }
    assert asked == {
        row[0]: {name.strip(" `") for name in row[1].split(",")} for row in table() if len(row) == 2
    }


def asked_of_the_consumer(part: type) -> set[str]:
    """The names that the class looks up in its consumer."""
    return {
        node.attr
        for node in ast.walk(ast.parse(inspect.getsource(part)))
        if isinstance(node, ast.Attribute)
        and getattr(node.value, "attr", getattr(node.value, "id", None)) == "consumer"
    }


def table() -> list[list[str]]:
    """The rows of both tables in the docstring of the package: four modes, or the parts that are asked."""
    return [
        [cell.strip().strip("`") for cell in line.split("|")[1:-1]]
        for line in (package.__doc__ or "").splitlines()
        if line.startswith("| `")
    ]


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_mutant_replaces_one_part(name: str) -> None:
    """And of the consumer nothing else but the life of its lanes, where its bug is a step that the table lacks."""
    replaced = own_names(MUTANTS[name])
    if name in ONLY_CONFIGURED:
        assert replaced == {"__init__"}
    elif replaced != {"life"}:
        assert is_part(*(replaced - {"life"}))


@pytest.mark.parametrize("name", sorted(MUTANTS.keys() - ONLY_CONFIGURED))
def test_a_mutants_part_overrides_public_names(name: str) -> None:
    """What begins with an underscore is the part's own."""
    mutant = MUTANTS[name]
    for attribute in own_names(mutant) - {"life"}:
        part, usual = getattr(mutant, attribute), getattr(mutant.__base__, attribute)
        if part.__module__.startswith(package.__name__):  # another part of the table
            assert part is not usual
        else:
            assert issubclass(part, usual)
            private = {
                each for each in own_names(part) if each.startswith("_") and hasattr(usual, each)
            }
            assert private <= {"__init__"}


@pytest.mark.parametrize(
    "name", sorted(name for name, mutant in MUTANTS.items() if "life" in vars(mutant))
)
def test_a_mutants_life_has_all_steps_of_the_table(name: str) -> None:
    """It adds some, or lets some lead elsewhere; none is missing, and there is at least one of its own."""
    mode = next(each for each in MODES if issubclass(MUTANTS[name], each))
    usual, mutants = mode.life, MUTANTS[name].life
    assert usual.keys() <= mutants.keys()
    assert dict(usual) != dict(mutants)


def own_names(of: type) -> set[str]:
    """What the class itself defines, without what every class has."""
    given = {"__module__", "__qualname__", "__doc__", "__firstlineno__", "__static_attributes__"}
    given |= {
        "__annotations__",
        "__annotate_func__",
        "__abstractmethods__",
        "_abc_impl",
        "__orig_bases__",
    }
    return set(vars(of)) - given


def is_part(name: str) -> bool:
    return name.endswith("_class") and any(hasattr(each, name) for each in (Consumer, *MODES))
