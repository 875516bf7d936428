"""Tenants: what may be set, and every mistake at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcron.errors import DefinitionError
from fleetcron.model.tenant import FIELDS, MAX_PAYLOAD, Tenant, rate_text, read_tenant


def mistakes(fields: dict[str, object], name: str = "acme") -> list[str]:
    with pytest.raises(DefinitionError) as caught:
        read_tenant(name, fields)
    return [str(mistake) for mistake in caught.value.mistakes]


def test_what_is_not_said_stays_as_it_is() -> None:
    """S3-9, S3-54 to S3-56, S3-59."""
    first = read_tenant("acme", {"weight": 3, "max_jobs": 0, "rate": "10/s", "max_payload": "64k"})
    assert first == Tenant("acme", 3, 0, None, 10.0, 1, 65_536)
    second = read_tenant("acme", {"max_in_flight": 5, "max_jobs": None, "burst": 4}, first)
    assert second == Tenant("acme", 3, None, 5, 10.0, 4, 65_536)
    assert read_tenant("acme", {}, second) == second
    assert read_tenant("acme", {"rate": None}, second).rate_per_s is None
    assert set(second.as_document()) == set(FIELDS)
    assert read_tenant("acme", second.as_document()) == second


def test_every_mistake_at_once() -> None:
    wrong = {"weight": 0, "max_jobs": -1, "max_in_flight": 0, "rate": "fast", "burst": None}
    told = mistakes({**wrong, "max_payload": MAX_PAYLOAD + 1}, "Acme")
    assert told == [
        "/name: 'Acme' is not a name of a tenant; small letters, digits, dots, dashes and underscores, 200 at most, a"
        " letter or digit first",
        "/weight: 0 is less than 1, the least that is allowed",
        "/max_jobs: -1 is less than 0, the least that is allowed",
        "/max_in_flight: 0 is less than 1, the least that is allowed",
        "/rate: 'fast' is not a rate; write 10/s, 100/m, 1000/h or 5000/d",
        "/burst: must be a whole number; it cannot be without one",
        "/max_payload: 262145 is more than 262144, the most that is allowed",
    ]


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("weight", 1001, "1001 is more than 1000"),
        ("weight", True, "must be a whole number, not True"),
        ("weight", 1.5, "must be a whole number, not 1.5"),
        ("weight", "3", "must be a whole number, not '3'"),
        ("weight", 10**50, "a huge number is more than 1000"),
        ("rate", 10, "10 is not a rate"),
        ("rate", "0/s", "less than 1/d"),
        ("rate", "1/w", "is not a rate"),
        ("rate", "100001/s", "more than 100000/s"),
        ("rate", "x" * 500, "…"),
        ("max_payload", "1g", "is not a size"),
        ("max_payload", None, "is not a size"),
        ("max_payload", 1, "less than 2"),
        ("max_paylod", 5, "did you mean max_payload?"),
        ("paused", True, "a tenant has no such field"),
    ],
)
def test_mistakes_are_told_in_words(field: str, value: object, told: str) -> None:
    [said] = mistakes({field: value})
    assert told in said
    assert len(said) < 250


@pytest.mark.parametrize("name", ["a\n", "", "a/b", "-a", "x" * 201, "ä"])
def test_names_are_as_those_of_jobs(name: str) -> None:
    assert mistakes({}, name)[0].startswith("/name: ")


@pytest.mark.parametrize(
    ("text", "per_s", "again"),
    [
        ("10/s", 10.0, "10/s"),
        ("100/m", 100 / 60, "100/m"),
        (" 60 / m ", 1.0, "1/s"),
        ("0.5/s", 0.5, "30/m"),
        ("1000/h", 1000 / 3600, "1000/h"),
        ("1/d", 1 / 86_400, "1/d"),
    ],
)
def test_rates(text: str, per_s: float, again: str) -> None:
    assert read_tenant("a", {"rate": text}).rate_per_s == per_s
    assert rate_text(per_s) == again


@given(st.integers(1, 100_000), st.sampled_from("smhd"))
def test_a_rate_is_written_as_it_is_read(count: int, unit: str) -> None:
    tenant = read_tenant("a", {"rate": f"{count}/{unit}"})
    assert read_tenant("a", tenant.as_document()) == tenant
