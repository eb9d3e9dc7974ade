"""Rules for faults: how they are written, and which requests they meet."""

from __future__ import annotations

import pytest

from conformance.tap.faults import Action, Faults, Rule, parse_rule
from reference_impl.protocol.codes import RequestCode
from specs.errors import UsageError


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("LOCK_BATCH_MQ=lose", Rule(41, Action.LOSE)),
        ("41=lose-answer", Rule(41, Action.LOSE_ANSWER)),
        ("QUERY_CONSUMER_OFFSET#2=answer:1", Rule(14, Action.ANSWER, 2, 2, number=1)),
        ("PULL_MESSAGE#2-=delay-answer:50", Rule(11, Action.DELAY_ANSWER, 2, None, number=50)),
        ("UPDATE_CONSUMER_OFFSET#1-3@c1=delay:500", Rule(15, Action.DELAY, 1, 3, "c1", 500)),
    ],
)
def test_a_rule_as_it_is_written(text: str, rule: Rule) -> None:
    assert parse_rule(text) == rule
    assert parse_rule(rule.text) == rule


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nonsense", "is no fault"),
        ("LOCK_BATCH_MQ@c1#2=lose", "is no fault"),
        ("DANCE=lose", "no request of the protocol"),
        ("LOCK_BATCH_MQ=dance", "nothing that a tap does"),
        ("LOCK_BATCH_MQ=delay", "needs a number"),
        ("LOCK_BATCH_MQ=lose:3", "takes no number"),
        ("LOCK_BATCH_MQ#0=lose", "from 1 upwards"),
        ("LOCK_BATCH_MQ#3-2=lose", "from 1 upwards"),
    ],
)
def test_a_rule_that_is_none(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        parse_rule(text)


def test_requests_are_counted_for_each_client_and_queue() -> None:
    second = parse_rule("PULL_MESSAGE#2=lose")
    faults = Faults((second,))
    asked = [("a", "0"), ("b", "0"), ("a", "1"), ("a", "0"), ("a", "0")]
    met = [faults.on_request(RequestCode.PULL_MESSAGE, client, queue) for client, queue in asked]
    assert met == [None, None, None, second, None]
    assert faults.on_request(RequestCode.LOCK_BATCH_MQ, "a", "0") is None


def test_a_rule_of_one_client_and_the_rules_that_met_nothing() -> None:
    faults = Faults((parse_rule("PULL_MESSAGE@a=lose"), parse_rule("LOCK_BATCH_MQ=lose")))
    assert faults.on_request(RequestCode.PULL_MESSAGE, "b", "0") is None
    assert faults.on_request(RequestCode.PULL_MESSAGE, "a", "0") == faults.rules[0]
    assert faults.unused == [faults.rules[1]]
