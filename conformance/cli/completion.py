"""What a shell completes: targets with what follows their colon, mutants, profiles, cases, clauses, folders of runs.

`_INORDER_COMPLETE=bash_source inorder` prints the script for bash; zsh_source and fish_source those for theirs.
A completion says nothing but words: what can't be read here completes to nothing.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from importlib.metadata import entry_points
from typing import ClassVar

import click
from click.shell_completion import BashComplete, CompletionItem, split_arg_string

from conformance.cli.people import about

Words = Callable[[str], Iterable[CompletionItem]]
Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

TARGETS_GROUP = "inorder.targets"
MOST = 500
_DEPTH = 3
_VERDICT = "verdict.json"


def _quietly(words: Words) -> Completer:
    """A completer for click. An error would be printed into the line that somebody is typing."""

    @wraps(words)
    def completer(
        context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        try:
            return list(words(incomplete))
        except Exception:
            return []

    return completer


def _beginning(incomplete: str, words: Iterable[tuple[str, str]]) -> Iterator[CompletionItem]:
    for word, told in words:
        if word.lower().startswith(incomplete.lower()):
            yield CompletionItem(word, help=" ".join(told.split()) or None)


# -------------------------------------------------------------------------------------------- targets


def _known_mutants(*oracles: str) -> Iterator[tuple[str, str]]:
    from reference_impl.mutants import every_mutant

    for mutant in sorted(every_mutant(), key=lambda each: each.name):
        if not oracles or mutant.oracle in oracles:
            yield mutant.name, mutant.bug


def _flushes() -> Iterator[tuple[str, str]]:
    yield "sync", "on disks: an answer waits until it is synced"
    yield "async", "on disks: a crash takes the last moments"


def _versions(part: str, of: str = "VERSIONS") -> Callable[[], Iterator[tuple[str, str]]]:
    def named() -> Iterator[tuple[str, str]]:
        from importlib import import_module

        return (
            (version, "") for version in getattr(import_module(f"conformance.parts.{part}"), of)
        )

    return named


_ARGUMENTS: Mapping[str, Callable[[], Iterable[tuple[str, str]]]] = {
    "reference": _flushes,
    "reference+tcp": _flushes,
    "reference+java": _versions("jars", "CLIENT_VERSIONS"),
    "mutant": lambda: _known_mutants("history"),
    "mutant+tcp": _known_mutants,
    "rocketmq-local": _versions("jars"),
    "kafka-local": _versions("kafka"),
    "nats-local": _versions("nats"),
    "redis-local": _versions("redis"),
    "rabbitmq-local": _versions("rabbitmq"),
    "sqs-local": _versions("elasticmq"),
}
"""What may follow the colon, where that is one of a few words."""


@_quietly
def target(incomplete: str) -> Iterable[CompletionItem]:
    """A target's name; behind its colon a mutant, a version, or how disks flush."""
    name, colon, argument = incomplete.partition(":")
    if not colon:
        told = (
            (entry.name, about(entry.load().__doc__ or ""))
            for entry in sorted(entry_points(group=TARGETS_GROUP), key=lambda entry: entry.name)
            if entry.name.startswith(incomplete)
        )
        return list(_beginning(incomplete, told))
    known = _ARGUMENTS[name]() if name in _ARGUMENTS else ()
    return [
        CompletionItem(f"{name}:{item.value}", help=item.help)
        for item in _beginning(argument, known)
    ]


# ---------------------------------------------------------------------------- names of the project's own


@_quietly
def mutant(incomplete: str) -> Iterable[CompletionItem]:
    """The name of a mutant, as `inorder mutants` takes it."""
    return _beginning(incomplete, _known_mutants())


@_quietly
def profile(incomplete: str) -> Iterable[CompletionItem]:
    """A profile by name; or a file."""
    from specs import profiles

    found = list(
        _beginning(incomplete, ((name, profiles.load(name).title) for name in profiles.names()))
    )
    return found or [CompletionItem(incomplete, type="file")]


@_quietly
def clause(incomplete: str) -> Iterable[CompletionItem]:
    """The id of a clause, or of a wire rule."""
    from specs.clauses.catalogue import catalogue
    from specs.model.rules import RULES

    named = [(each.id, each.title) for each in catalogue()]
    return _beginning(incomplete, named + [(rule.id, rule.title) for rule in RULES.values()])


@_quietly
def scenario(incomplete: str) -> Iterable[CompletionItem]:
    """A scenario of `inorder chaos`."""
    for entry in entry_points(group="inorder.lists", name="scenarios"):
        found = entry.load()()
        return list(_beginning(incomplete, ((each["name"], each["why"]) for each in found)))
    return []


@_quietly
def faults(incomplete: str) -> Iterable[CompletionItem]:
    """Verbs of faults, one after the other with a comma between."""
    from specs.faults import FAULTS

    before, comma, last = incomplete.rpartition(",")
    told = ((verb, fault.why.splitlines()[0]) for verb, fault in FAULTS.items())
    return [
        CompletionItem(f"{before}{comma}{item.value}", help=item.help)
        for item in _beginning(last, told)
    ]


@_quietly
def recipe(incomplete: str) -> Iterable[CompletionItem]:
    """A map of `inorder import` that comes with the project."""
    from conformance.importing import mapping

    return _beginning(incomplete, ((name, mapping.why(name)) for name in mapping.recipes()))


# ----------------------------------------------------------------------------------------------- runs


def _runs(incomplete: str) -> list[CompletionItem]:
    """Folders with a verdict, up to some levels below what was typed; else the shell's own folders."""
    base = glob.escape(incomplete) + "*"
    found = sorted(
        {
            os.path.dirname(path)
            for depth in range(_DEPTH)
            for path in glob.glob(os.path.join(base, *["*"] * depth, _VERDICT))
        }
    )[:MOST]
    return [CompletionItem(each) for each in found] or [CompletionItem(incomplete, type="dir")]


@_quietly
def run(incomplete: str) -> Iterable[CompletionItem]:
    """The folder of a judged run."""
    return _runs(incomplete)


@_quietly
def replayed(incomplete: str) -> Iterable[CompletionItem]:
    """The folder of a run, or a case."""
    from conformance.cases.folder import all_cases

    cases = _beginning(incomplete, ((each.name, each.why) for each in all_cases()))
    runs = [item for item in _runs(incomplete) if item.type == "plain"]
    return [*runs, *cases] or [CompletionItem(incomplete, type="file")]


# ----------------------------------------------------------------------------------------------- bash


class ColonsInBash(BashComplete):
    """Bash takes a colon for the end of a word, and what it completes is the part behind the last one."""

    name: ClassVar[str] = "bash"

    def get_completion_args(self) -> tuple[list[str], str]:
        words = split_arg_string(os.environ["COMP_WORDS"])[: int(os.environ["COMP_CWORD"]) + 1]
        if len(words) <= int(os.environ["COMP_CWORD"]):
            words.append("")
        joined: list[str] = []
        for word in words:
            if joined and (word == ":" or joined[-1].endswith(":")):
                joined[-1] += word
            else:
                joined.append(word)
        *args, incomplete = joined[1:] or [""]
        return args, incomplete

    def complete(self) -> str:
        args, incomplete = self.get_completion_args()
        before = incomplete[: incomplete.rfind(":") + 1]
        items = self.get_completions(args, incomplete)
        for item in items:
            if item.type == "plain":
                item.value = item.value.removeprefix(before)
        return "\n".join(self.format_completion(item) for item in items)
