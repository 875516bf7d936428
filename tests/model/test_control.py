"""Incident controls: what a wish makes of what is in force. S3-105."""

from dataclasses import replace

import pytest

from fleetcron.errors import DefinitionError
from fleetcron.model.control import Scope, Switched, Wish, apply
from fleetcron.model.queued import Control

NOW, HOUR = 1_000_000, 3_600_000


def wish(percent: int | None = None, **more: object) -> Wish:
    return Wish("tenant", "acme", percent, **{"reason": "why", **more})  # type: ignore[arg-type]


def switched(percent: int, retries: int | None, backoff: float, until_ms: int | None, why: str = "why") -> Switched:
    return Switched(Control("tenant", "acme", percent, retries, backoff, until_ms), why, "ann", NOW)


def test_a_hold_and_a_gradual_resume() -> None:
    held = apply(wish(0, for_ms=HOUR), None, "ann", NOW)
    assert held == switched(0, None, 1.0, NOW + HOUR)
    part = apply(wish(25, reason=None, keeps_end=True), held, "bob", NOW + 5)
    assert part == Switched(Control("tenant", "acme", 25, None, 1.0, NOW + HOUR), "why", "bob", NOW + 5)
    assert apply(wish(100, reason=None, keeps_end=True), part, "bob", NOW + 9) is None
    assert apply(wish(0, for_ms=60), held, "ann", NOW) == switched(0, None, 1.0, NOW + 60)  # shortened on purpose


def test_a_wish_leaves_what_it_does_not_name() -> None:
    slow = apply(wish(attempts=1, backoff=4.0), None, "ann", NOW)
    assert slow == switched(100, 1, 4.0, None)
    assert apply(wish(0), slow, "ann", NOW) == switched(0, 1, 4.0, None)
    assert apply(wish(attempts=3), slow, "ann", NOW) == switched(100, 3, 4.0, None)
    assert apply(wish(backoff=1.0, attempts=None), slow, "ann", NOW) == switched(100, 1, 1.0, None)


def test_nothing_ends_before_somebody_asked_for_it() -> None:
    """One record has one end: a hold without an end does not end because somebody slows the retries for an hour."""
    for_ever, hour = switched(0, None, 1.0, None), switched(0, None, 1.0, NOW + HOUR)
    shorter, longer = wish(attempts=1, for_ms=HOUR // 2), wish(attempts=1, for_ms=2 * HOUR)
    ends = [
        after.control.until_ms
        for before in (for_ever, hour)
        for each in (shorter, longer)
        if (after := apply(each, before, "ann", NOW)) is not None
    ]
    assert ends == [None, None, NOW + HOUR, NOW + 2 * HOUR]


def test_the_reason_of_what_stays_stays_too() -> None:
    held = switched(0, None, 1.0, None, "it floods")
    both = apply(wish(attempts=1, reason="db down"), held, "ann", NOW)
    assert both is not None
    assert both.reason == "it floods; db down"
    assert apply(wish(attempts=1, reason="db down"), both, "ann", NOW + 9) is both  # repeated: nothing changes
    repeated = apply(wish(attempts=1, reason="db down"), both, "cid", NOW + 9)
    assert repeated == replace(both, actor="cid", updated_ms=NOW + 9)  # by another one: it is his now
    other = apply(wish(0, reason="another"), held, "ann", NOW)
    assert other is not None
    assert other.reason == "another"


def test_what_is_over_counts_as_nothing() -> None:
    over = switched(0, 1, 4.0, NOW)
    assert apply(wish(attempts=2), over, "ann", NOW) == switched(100, 2, 1.0, None)
    assert apply(wish(attempts=2), over, "ann", NOW - 1) == Switched(
        Control("tenant", "acme", 0, 2, 4.0, None), "why", "ann", NOW - 1
    )


def test_every_mistake_at_once() -> None:
    with pytest.raises(DefinitionError) as caught:
        Wish("pool", "a b", 101, 0, 0.5, 0, "a\nb").check()
    assert [mistake.pointer for mistake in caught.value.mistakes] == [
        "/name",
        "/percent",
        "/attempts",
        "/backoff",
        "/for",
        "/reason",
    ]
    for bad in (wish(reason=None), wish(reason="  "), wish(reason="x" * 501), wish(backoff=float("nan"))):
        with pytest.raises(DefinitionError):
            bad.check()
    wish(reason=None, keeps_end=True).check()


@pytest.mark.parametrize(("scope", "name"), [("type", "shop.jobs:export"), ("type", "a b"), ("pool", "a-b")])
def test_a_type_may_have_any_label(scope: Scope, name: str) -> None:
    Wish(scope, name, 0, reason="x").check()
