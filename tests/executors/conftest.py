"""Waits of the executors that a test would only sit out: shorter, and nothing else about them changes."""

import pytest


@pytest.fixture(autouse=True)
def hosts_are_looked_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """More often than every half second."""
    monkeypatch.setattr("fleetcron.executors.handler_host._PING_MS", 50)


@pytest.fixture
def turns_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test in which an import hangs, and others come after it."""
    monkeypatch.setattr("fleetcron.executors.turns._TURN_S", 0.2)


@pytest.fixture
def force_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test of somebody that does not stop whatever is done to it."""
    monkeypatch.setattr("fleetcron.executors.flights.FORCED_MS", 100)
