"""Profiles say what counts: each line has its source, and a wrong profile is one clear sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from specs.clauses.catalogue import all_ids
from specs.errors import SpecError
from specs.profiles import WIRE_ANSWERS, load, names

IDS = all_ids()


def test_the_profiles_that_come_with_the_project() -> None:
    """As built and as documented for each line of versions, and the reference's."""
    assert names() == (
        "reference",
        "reference-broadcast",
        "reference-concurrent",
        "reference-key-ordered",
        "rocketmq-4.9-orderly",
        "rocketmq-4.9-orderly-documented",
        "rocketmq-5-broadcast",
        "rocketmq-5-concurrent",
        "rocketmq-5-orderly",
        "rocketmq-5-orderly-documented",
    )


@pytest.mark.parametrize("name", names())
def test_a_profile_speaks_about_every_clause_and_every_answer(name: str) -> None:
    """Nothing is left to chance; each line has a source, each deviation a reason."""
    profile = load(name)
    assert set(profile.claims) == IDS
    assert set(profile.wire) == set(WIRE_ANSWERS)
    for claim in profile.claims.values():
        assert claim.source
        assert bool(claim.reason) == (claim.status != "claimed")


def test_the_reference_claims_everything() -> None:
    """Our own code gets no excuse."""
    assert {claim.status for claim in load("reference").claims.values()} == {"claimed"}


def test_a_profile_says_how_its_groups_consume() -> None:
    """The mode is inherited like everything else; without a word it is the orderly one."""
    assert load("rocketmq-4.9-orderly").config == {"mode": "orderly", "message_model": "clustering"}
    assert load("reference-key-ordered").config == {"mode": "key_ordered", "message_model": "clustering"}
    assert load("rocketmq-5-broadcast").config == {"mode": "concurrent", "message_model": "broadcasting"}


def test_dead_letters_wait_in_4_9_only() -> None:
    """The promise that a version gate rests on."""
    assert load("rocketmq-5-orderly").claim("DLQ-7").status == "claimed"
    assert load("rocketmq-4.9-orderly").claim("DLQ-7").status == "not_applicable"
    assert load("rocketmq-4.9-orderly").wire["dead_letter_waits_for_delay_level"] is True


@pytest.mark.parametrize("line", ["4.9", "5"])
def test_what_is_allowed_as_built_is_claimed_as_documented(line: str) -> None:
    """The two profiles of a line of versions differ in nothing else."""
    built, documented = load(f"rocketmq-{line}-orderly"), load(f"rocketmq-{line}-orderly-documented")
    allowed = {name for name, claim in built.claims.items() if claim.status == "allowed"}
    assert allowed
    assert {name for name in IDS if built.claim(name) != documented.claim(name)} == allowed
    assert {documented.claim(name).status for name in allowed} == {"claimed"}
    assert built.wire == documented.wire


def test_a_clause_that_a_profile_does_not_name_is_not_applicable(tmp_path: Path) -> None:
    """An empty profile claims nothing."""
    path = tmp_path / "empty.toml"
    path.write_text("", encoding="utf-8")
    assert load(str(path)).claim("LSE-1").status == "not_applicable"


def test_a_profile_of_ones_own_extends_another(tmp_path: Path) -> None:
    """Its lines win, the others are kept."""
    path = tmp_path / "ours.toml"
    path.write_text(
        'extends = "rocketmq-5-orderly"\n[clauses]\n'
        'LSE-2 = { status = "claimed", source = "our runbook" }\n[wire]\nqueue_out_of_range_code = 1\n',
        encoding="utf-8",
    )
    ours, theirs = load(str(path)), load("rocketmq-5-orderly")
    assert ours.claim("LSE-2").status == "claimed"
    assert ours.claim("CMT-5") == theirs.claim("CMT-5")
    assert ours.wire == {**theirs.wire, "queue_out_of_range_code": 1}


WRONG = {
    "unknown clause": ('[clauses]\nLSE-99 = { status = "claimed", source = "x" }', "unknown clause LSE-99"),
    "unknown status": ('[clauses]\nLSE-1 = { status = "hoped", source = "x" }', "status must be one of"),
    "no table": ('clauses = "all"', r"\[clauses\] must be a table"),
    "no line": ('[clauses]\nLSE-1 = "claimed"', "status must be one of"),
    "no source": ('[clauses]\nLSE-1 = { status = "claimed" }', "needs its source"),
    "no reason": ('[clauses]\nLSE-1 = { status = "allowed", source = "x" }', "allowed needs a reason"),
    "contradiction": (
        '[clauses]\nLSE-1 = { status = "claimed", source = "x", reason = "but" }',
        "claimed and excused at once",
    ),
    "said twice": (
        '[clauses]\nLSE-1 = { status = "claimed", source = "x" }\nLSE-1 = { status = "claimed", source = "y" }',
        "is no TOML",
    ),
    "unknown entry of a line": ('[clauses]\nLSE-1 = { status = "claimed", source = "x", because = "y" }', "because"),
    "unknown entry": ("claims = 3", "unknown entry claims"),
    "unknown mode": ('mode = "wild"', "mode must be one of orderly, concurrent, key_ordered, not 'wild'"),
    "unknown model": ("message_model = 3", "message_model must be one of clustering, broadcasting, not 3"),
    "unknown parent": ('extends = "nobody"', "there is no profile nobody"),
    "parent of the wrong type": ("extends = 3", "extends must be"),
    "unknown answer": ("[wire]\nweather = 1", "unknown answer weather"),
    "an answer that nobody gives": ("[wire]\nqueue_out_of_range_code = 2", "must be 29 or 1, not 2"),
    "an answer of the wrong type": ("[wire]\nqueue_out_of_range_code = true", "must be 29 or 1, not True"),
    "no TOML": ("[clauses", "is no TOML"),
}


@pytest.mark.parametrize("wrong", sorted(WRONG))
def test_a_wrong_profile_is_one_sentence(wrong: str, tmp_path: Path) -> None:
    """SpecError (exit 64) names the profile and what is wrong."""
    text, said = WRONG[wrong]
    path = tmp_path / "wrong.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match=said) as raised:
        load(str(path))
    assert raised.value.exit_code == 64
    assert "\n" not in str(raised.value)


def test_a_circle_of_profiles_is_an_error(tmp_path: Path) -> None:
    """Not a recursion without end."""
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    one.write_text(f'extends = "{two}"', encoding="utf-8")
    two.write_text(f'extends = "{one}"', encoding="utf-8")
    with pytest.raises(SpecError, match="extends itself"):
        load(str(one))


def test_a_profile_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    """Bytes that are no UTF-8."""
    path = tmp_path / "bytes.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SpecError, match="can't be read"):
        load(str(path))
