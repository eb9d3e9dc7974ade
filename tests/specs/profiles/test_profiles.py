"""Profiles say what counts: each line has its source, and a wrong profile is one clear sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import specs.profiles
from specs.clauses.catalogue import all_ids, catalogue
from specs.errors import SpecError
from specs.profiles import WIRE_ANSWERS, load, names

IDS = all_ids()
LINES = ("4.0", "4.9", "5.0", "5.2", "5", "go")
CLAUSE_LINE = re.compile(r"(?!WIR)[A-Z]{3}-\d+ = ")
OF_KAFKA = (
    "kafka-go",
    "kafka-java",
    "kafka-java-auto",
    "kafka-librdkafka",
    "kafka-librdkafka-auto",
    "kafka-librdkafka-stored",
    "kafka-librdkafka-transactions",
)
SHARED = "kafka-share"
"""Members of a group of this kind are promised no order, and own no lane."""
NATS_SHARED = "nats-shared"
OF_NATS = ("nats-ordered", "nats-queue", "nats-queue-late", NATS_SHARED)
OF_REDIS = ("redis-streams",)
OF_RABBITMQ = ("rabbitmq-classic", "rabbitmq-quorum", "rabbitmq-quorum-documented")
OF_SQS = ("sqs-fifo",)
OF_GRPC = ("rocketmq-grpc-fifo",)
BY_KEY = "key-ordered-queue"
OF_OTHER_PRODUCTS = (
    *OF_KAFKA,
    SHARED,
    *OF_NATS,
    *OF_REDIS,
    *OF_RABBITMQ,
    *OF_SQS,
    *OF_GRPC,
    "leased",
    "grouped",
    "minimal-fifo",
    "ordered-queue",
    BY_KEY,
)


OWN: Mapping[tuple[str, ...], set[str]] = {
    (*OF_KAFKA, *OF_REDIS, "ordered-queue"): {"LSE-2"},
    OF_RABBITMQ: {"LSE-2", "RTY-4"},
    (*OF_NATS, *OF_SQS): {"RTY-1", "RTY-4"},
    OF_GRPC: {"RTY-1", "RTY-4", "RTY-5", "RTY-7", "DLQ-1", "DLQ-2", "DLQ-3"},
}
"""What they claim of leases, retries and dead letters."""


def test_the_profiles_that_come_with_the_project() -> None:
    """As built and as documented for each line of versions, the reference's, and those of other products."""
    of_rocketmq = {f"rocketmq-{line}-orderly{end}" for line in LINES for end in ("", "-documented")}
    assert {"reference", *OF_OTHER_PRODUCTS, *of_rocketmq} <= set(names())


@pytest.mark.parametrize("name", names())
def test_a_profile_speaks_about_every_clause_and_every_answer(name: str) -> None:
    """Nothing is left to chance; each line has a source, each deviation a reason."""
    profile = load(name)
    assert set(profile.claims) == IDS
    left_out = {"retry_send_diverts_under_live_lock"} if name.startswith("rocketmq-5.0") else set()
    assert set(profile.wire) == (
        set() if name in OF_OTHER_PRODUCTS else set(WIRE_ANSWERS) - left_out
    )
    for claim in profile.claims.values():
        assert claim.source
        assert bool(claim.reason) == (claim.status != "claimed")


def claims_of(path: Path) -> object:
    """What a file claims; nothing where it contradicts itself without the line that was left out."""
    try:
        return load(str(path)).claims
    except SpecError:
        return None


@pytest.mark.parametrize("name", names())
def test_every_line_of_a_profile_says_something_new(name: str, tmp_path: Path) -> None:
    """A line that its family's line, or the profile that it extends, says already is left out."""
    folder = Path(specs.profiles.__file__).parent
    lines = (folder / f"{name}.toml").read_text(encoding="utf-8").splitlines()
    whole, path = load(name), tmp_path / f"{name}.toml"
    for number, line in enumerate(lines):
        if CLAUSE_LINE.match(line):
            path.write_text("\n".join(lines[:number] + lines[number + 1 :]), encoding="utf-8")
            assert claims_of(path) != whole.claims, line


def test_the_word_claimed_takes_its_source_from_the_clause(tmp_path: Path) -> None:
    """So a new clause of a family that is claimed needs no line in any profile."""
    path = tmp_path / "ours.toml"
    path.write_text('[families]\nLSE = "claimed"\n[clauses]\nSND-1 = "claimed"\n', encoding="utf-8")
    claims = load(str(path)).claims
    promised = {clause.id: clause.sources[0] for clause in catalogue()}
    assert {name: claim.source for name, claim in claims.items()} == {
        name: source
        for name, source in promised.items()
        if name.startswith("LSE-") or name == "SND-1"
    }
    assert {claim.status for claim in claims.values()} == {"claimed"}


OF_COORDINATORS = {"ORD-15", "GEN-1"}
"""Sends in flight and generations of groups: RocketMQ has neither, and a reference of their own claims them."""


def test_the_reference_claims_everything() -> None:
    """Our own code gets no excuse; what is only of messages that are leased one by one, that reference claims."""
    claims = load("reference").claims
    left = {name for name, claim in claims.items() if claim.status != "claimed"}
    leased = {clause.id for clause in catalogue() if clause.family in ("PML", "FLR", "KEY")}
    assert left == leased | OF_COORDINATORS
    assert {load("leased").claim(name).status for name in leased} == {"claimed"}
    assert {load("grouped").claim(name).status for name in OF_COORDINATORS} == {"claimed"}


def test_a_profile_says_how_its_groups_consume() -> None:
    """The mode is inherited like everything else; without a word it is the orderly one."""
    assert load("rocketmq-4.9-orderly").config == {"mode": "orderly", "message_model": "clustering"}
    assert load("reference-key-ordered").config == {
        "mode": "key_ordered",
        "message_model": "clustering",
    }
    assert load("rocketmq-5-broadcast").config == {
        "mode": "concurrent",
        "message_model": "broadcasting",
    }


def test_dead_letters_wait_in_4_9_only() -> None:
    """The promise that a version gate rests on."""
    assert load("rocketmq-5-orderly").claim("DLQ-7").status == "claimed"
    assert load("rocketmq-4.9-orderly").claim("DLQ-7").status == "not_applicable"
    assert load("rocketmq-4.9-orderly").wire["dead_letter_waits_for_delay_level"] is True


@pytest.mark.parametrize("line", LINES)
def test_what_is_allowed_as_built_is_claimed_as_documented(line: str) -> None:
    """The two profiles of a line of versions differ in nothing else."""
    built, documented = (
        load(f"rocketmq-{line}-orderly"),
        load(f"rocketmq-{line}-orderly-documented"),
    )
    allowed = {name for name, claim in built.claims.items() if claim.status == "allowed"}
    assert allowed
    assert {name for name in IDS if built.claim(name) != documented.claim(name)} == allowed
    assert {documented.claim(name).status for name in allowed} == {"claimed"}
    assert built.wire == documented.wire
    assert documented.rules == {}


def test_a_line_may_excuse_a_wire_rule(tmp_path: Path) -> None:
    """The brokers' answers that a release gets wrong, each with its reason; the rules that nobody names are claimed."""
    assert load("rocketmq-4.0-orderly").rules["WIR-9"].status == "allowed"
    assert load("rocketmq-4.0-orderly + reference").rules == load("rocketmq-4.0-orderly").rules
    assert (
        load("reference + rocketmq-4.0-orderly").rules == load("rocketmq-4.9-orderly").rules == {}
    )
    path = tmp_path / "strict.toml"
    claimed = '[rules]\nWIR-9 = { status = "claimed", source = "x" }\n'
    path.write_text(f'extends = "rocketmq-4.0-orderly"\n{claimed}', encoding="utf-8")
    assert load(str(path)).rules["WIR-9"].status == "claimed"


def test_the_two_lines_of_5_differ_where_the_releases_did() -> None:
    """The unlock that comes too soon has another reason, exhausted messages circled up to 5.1.0, 5.2 checks commits."""
    old, new = load("rocketmq-5.0-orderly"), load("rocketmq-5.2-orderly")
    assert {name for name in IDS if old.claim(name) != new.claim(name)} >= {
        "LSE-2",
        "LSE-3",
        "DLQ-1",
    }
    assert (old.claim("DLQ-1").status, new.claim("DLQ-1").status) == ("allowed", "claimed")
    assert (old.wire["commit_unknown_group_code"], new.wire["commit_unknown_group_code"]) == (0, 26)


def test_the_plain_name_of_5_is_the_newest_line() -> None:
    """Scripts that name it keep working."""
    for end in ("", "-documented"):
        plain, newest = load(f"rocketmq-5-orderly{end}"), load(f"rocketmq-5.2-orderly{end}")
        assert (plain.claims, plain.wire) == (newest.claims, newest.wire)


def test_other_products_claim_order_and_no_leases() -> None:
    """A Kafka partition and a plain FIFO queue share the order of first deliveries."""
    for name in set(OF_OTHER_PRODUCTS) - {"leased", "grouped"}:
        profile = load(name)
        order = {"ORD-2", "ORD-12"}
        order -= {"ORD-2"} if name == BY_KEY else set()
        first = {"SND-1"} if name in ("rabbitmq-quorum", SHARED, NATS_SHARED) else {*order, "SND-1"}
        assert {profile.claim(key).status for key in first} == {"claimed"}
        if name in (SHARED, NATS_SHARED):
            assert {profile.claim(key).status for key in order} == {"not_applicable"}
        own = next((own for names, own in OWN.items() if name in names), set())
        assert {
            profile.claim(key).status for key in IDS - own if key.startswith(("LSE", "RTY", "DLQ"))
        } == {"not_applicable"}


def test_the_nearest_line_wins(tmp_path: Path) -> None:
    """A family's line over the parent's lines for its clauses, a clause's line over its family's."""
    path = tmp_path / "ours.toml"
    path.write_text(
        'extends = "rocketmq-5-orderly"\n'
        '[families]\nLSE = { status = "not_applicable", source = "runbook", reason = "one consumer only" }\n'
        '[clauses]\nLSE-1 = { status = "claimed", source = "runbook" }\n'
        '[wire]\nretry_send_diverts_under_live_lock = "any"\n',
        encoding="utf-8",
    )
    ours, theirs = load(str(path)), load("rocketmq-5-orderly")
    assert ours.claim("LSE-1").status == "claimed"
    assert {ours.claim(key).reason for key in IDS if key.startswith("LSE-") and key != "LSE-1"} == {
        "one consumer only"
    }
    assert ours.claim("ORD-2") == theirs.claim("ORD-2")
    assert "retry_send_diverts_under_live_lock" not in ours.wire


def test_the_example_of_the_documentation_is_a_profile(tmp_path: Path) -> None:
    """docs/profiles.md shows one that loads."""
    text = (Path(__file__).parents[3] / "docs" / "profiles.md").read_text(encoding="utf-8")
    path = tmp_path / "example.toml"
    path.write_text(text.split("```toml\n")[1].split("```")[0], encoding="utf-8")
    example = load(str(path))
    assert (example.title, example.claim("DLQ-1").reason) == (
        "Our order service",
        "dead letters are switched off",
    )


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
    "unknown clause": (
        '[clauses]\nLSE-99 = { status = "claimed", source = "x" }',
        "unknown clause LSE-99",
    ),
    "misspelt clause": (
        '[clauses]\nLSE-01 = { status = "claimed", source = "x" }',
        "did you mean LSE-1",
    ),
    "unknown family": (
        '[families]\nLES = { status = "claimed", source = "x" }',
        "unknown family LES; known are ORD",
    ),
    "family without a reason": (
        '[families]\nLSE = { status = "allowed", source = "x" }',
        "LSE: allowed needs",
    ),
    "family with a finding": (
        '[families]\nLSE = { status = "allowed", source = "x", reason = "y", findings = ["two-owners"] }',
        "LSE: findings are those of one clause",
    ),
    "families that are no table": ('families = ["LSE"]', r"\[families\] must be a table"),
    "claimed, and denied on the wire": (
        'extends = "rocketmq-4.9-orderly"\n[clauses]\nDLQ-7 = { status = "claimed", source = "x" }',
        "contradicts itself: it claims DLQ-7, and .wire. says dead_letter_waits",
    ),
    "unknown status": (
        '[clauses]\nLSE-1 = { status = "hoped", source = "x" }',
        "status must be one of",
    ),
    "no table": ('clauses = "all"', r"\[clauses\] must be a table"),
    "no line": ('[clauses]\nLSE-1 = "allowed"', "status must be one of"),
    "no source": ('[clauses]\nLSE-1 = { status = "claimed" }', "needs its source"),
    "no reason": (
        '[clauses]\nLSE-1 = { status = "allowed", source = "x" }',
        "allowed needs a reason",
    ),
    "contradiction": (
        '[clauses]\nLSE-1 = { status = "claimed", source = "x", reason = "but" }',
        "claimed and excused at once",
    ),
    "said twice": (
        '[clauses]\nLSE-1 = { status = "claimed", source = "x" }\nLSE-1 = { status = "claimed", source = "y" }',
        "is no TOML",
    ),
    "unknown entry of a line": (
        '[clauses]\nLSE-1 = { status = "claimed", source = "x", because = "y" }',
        "because",
    ),
    "unknown entry": ("claims = 3", "unknown entry claims"),
    "unknown mode": (
        'mode = "wild"',
        "mode must be one of orderly, concurrent, key_ordered, not 'wild'",
    ),
    "unknown model": (
        "message_model = 3",
        "message_model must be one of clustering, broadcasting, not 3",
    ),
    "unknown parent": ('extends = "nobody"', "there is no profile nobody"),
    "parent of the wrong type": ("extends = 3", "extends must be"),
    "unknown answer": ("[wire]\nweather = 1", "unknown answer weather"),
    "an answer that nobody gives": (
        "[wire]\nqueue_out_of_range_code = 2",
        "must be 29 or 1, not 2",
    ),
    "an unknown wire rule": (
        '[rules]\nWIR-99 = { status = "claimed", source = "x" }',
        "unknown wire rule WIR-99",
    ),
    "a wire rule that does not apply": (
        '[rules]\nWIR-9 = { status = "not_applicable", source = "x", reason = "y" }',
        "a wire rule is claimed or allowed",
    ),
    "an answer of the wrong type": (
        "[wire]\nqueue_out_of_range_code = true",
        "must be 29 or 1, not True",
    ),
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


def test_a_broker_of_one_product_and_clients_of_another() -> None:
    """Each keeps its own promises; one of both is as weak as the weaker of the two, unless it is the broker's alone."""
    mixed = load("reference + rocketmq-4.9-orderly")
    own, theirs = load("reference"), load("rocketmq-4.9-orderly")
    assert set(mixed.claims) == IDS
    assert mixed.wire == own.wire
    assert mixed.claim("LSE-1") == own.claim("LSE-1")  # the broker's
    assert mixed.claim("LSE-3") == theirs.claim("LSE-3")  # the client's
    assert mixed.claim("ORD-4") == theirs.claim("ORD-4")  # of both, and the client's deviation
    assert mixed.claim("DLQ-1") == own.claim(
        "DLQ-1"
    )  # of both, but what 4.9 does otherwise its broker does
    assert load("rocketmq-4.9-orderly + reference").claim("DLQ-1") == theirs.claim("DLQ-1")
    assert mixed.name == "reference + rocketmq-4.9-orderly"


def test_what_a_client_passes_by_is_its_own_doing_whatever_the_broker() -> None:
    """A line that names nothing else of a promise of the broker's is the client's; one that names more is not."""
    go = load("rocketmq-go-orderly").claim("DLQ-1")
    assert load("rocketmq-5.2-orderly + rocketmq-go-orderly").claim("DLQ-1") == go
    older = load("rocketmq-5.0-orderly + rocketmq-go-orderly").claim("DLQ-1")
    assert (older.status, older.findings) == ("allowed", ("not-found", "passed-by"))
    assert load("rocketmq-5.2-orderly + rocketmq-5.0-orderly").claim("DLQ-1").status == "claimed"
    waits = load("rocketmq-4.9-orderly + rocketmq-go-orderly").claim("DLQ-1")
    assert waits == load("rocketmq-4.9-orderly").claim("DLQ-1")


def test_a_mixed_profile_of_what_does_not_exist() -> None:
    with pytest.raises(SpecError, match="there is no profile nonsense"):
        load("reference + nonsense")
