"""What lies on one worker when the tests are spread over several: tests/conftest.py sees to it."""

from __future__ import annotations

import pytest

MADE: list[str] = []


@pytest.fixture(scope="module")
def shared() -> str:
    """Something that is made once for the module, were it on several workers or on one."""
    MADE.append("made")
    return "shared"


def group(request: pytest.FixtureRequest) -> str:
    """What `--dist loadgroup` takes for the group; without it there are none."""
    if not request.config.getoption("loadgroup", default=False):
        pytest.skip("the tests are not spread by group")
    return str(request.node.nodeid).rpartition("@")[2]


@pytest.mark.xdist_group("a group")
def test_a_mark_names_the_group(request: pytest.FixtureRequest) -> None:
    assert group(request) == "a group"


@pytest.mark.parametrize("number", range(8))
def test_who_shares_a_fixture_of_the_module_is_in_the_group_of_the_module(
    request: pytest.FixtureRequest, shared: str, number: int
) -> None:
    assert group(request) == "tests/test_groups.py"
    assert (shared, MADE) == ("shared", ["made"])


def test_who_shares_nothing_is_in_no_group(request: pytest.FixtureRequest) -> None:
    assert group(request) == str(request.node.nodeid)
