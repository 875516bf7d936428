"""Tests that belong together run in one worker of xdist. A pytest that xdist does not know yet may forget it without a
word: then fleets that fight for the same cores measure each other, and what one test leaves for another is lost."""

import os

import pytest


@pytest.mark.xdist_group("of-one-mind")
def test_a_group_is_heard(request: pytest.FixtureRequest) -> None:
    if os.environ.get("PYTEST_XDIST_WORKER"):
        assert request.node.nodeid.endswith("@of-one-mind")
    else:
        assert request.config.getoption("numprocesses", None) in (None, 0)
