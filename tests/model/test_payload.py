"""Payloads: JSON objects within limits, with a few templates and no code."""

import pytest

from fleetcron.model.payload import filled, problems, size
from tests.model.documents import JSON_VALUES
from tests.times.examples import AMOUNT, for_all


@AMOUNT
def test_any_json_object_within_the_limits_is_a_payload(amount: float) -> None:
    """S0-20: job_payload is any JSON object."""

    @for_all(200 * amount, JSON_VALUES)
    def law(value) -> None:
        assert problems({"value": value}) == []


def nested(levels: int) -> dict:
    value: dict = {}
    for _ in range(levels - 1):
        value = {"in": value}
    return value


def test_the_limits_are_exact() -> None:
    assert problems(nested(32)) == []
    ((path, text, _),) = problems(nested(33))
    assert (len(path), text) == (32, "nested deeper than 32 levels")
    full = {"a": "x" * (256 * 1024 - 8)}
    assert size(full) == 256 * 1024
    assert problems(full) == []
    assert problems({"a": full["a"] + "x"})[0][1] == "larger than 256 KiB of JSON"
    assert problems({"a": "é" * 128 * 1024})[0][1] == "larger than 256 KiB of JSON"
    assert problems({"a": "x" * 100}, 100)[0][1] == "larger than 100 bytes of JSON"


@pytest.mark.parametrize(
    ("payload", "path"),
    [
        ([], ()),
        (None, ()),
        ({"a": [1, float("nan")]}, ("a", 1)),
        ({"a": float("-inf")}, ("a",)),
        ({"a": {1: 2}}, ("a",)),
        ({"a": {1, 2}}, ("a",)),
        ({"a": "\0"}, ("a",)),
        ({"a": "\ud800"}, ("a",)),
        ({"a\0": 1}, ("a\0",)),
        ({"a": 1 << 5000}, ("a",)),
        ({"{{ tenant }}": 1}, ("{{ tenant }}",)),
        ({"a": ["{{ now() }}"]}, ("a", 0)),
        ({"a": "{{ scheduled_for }"}, ("a",)),
        ({"a": "{{ job }} {{ x }}"}, ("a",)),
    ],
)
def test_each_mistake_has_its_place(payload, path) -> None:
    """S4-9: templates are three words, not code."""
    assert [found[0] for found in problems(payload)] == [path]


def test_endless_and_exploding_payloads_are_refused_at_once() -> None:
    endless: dict = {}
    endless["again"] = endless
    assert "nested deeper" in problems(endless)[0][1]
    bomb: list = []
    for _ in range(30):
        bomb = [bomb] * 30
    assert problems({"a": bomb})[-1][1] == "larger than 256 KiB of JSON"


def test_templates_are_filled_in_texts_at_any_depth() -> None:
    payload = {"a": ["{{ scheduled_for }}/{{tenant}}", 1], "b": {"c": "{{ job.name }}", "d": None}, "{x}": "}}"}
    assert filled(payload, "2026-01-01T00:00:00Z", "report", "acme") == {
        "a": ["2026-01-01T00:00:00Z/acme", 1],
        "b": {"c": "report", "d": None},
        "{x}": "}}",
    }


def test_what_is_filled_in_is_not_filled_again() -> None:
    assert filled({"a": "{{ tenant }}"}, "", "", "{{ job.name }}") == {"a": "{{ job.name }}"}
