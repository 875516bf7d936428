"""YAML as JSON has it: what a text means, and where it is wrong."""

import json
from contextlib import suppress
from time import perf_counter

import pytest
import yaml
from hypothesis import strategies as st

from fleetcron.errors import DefinitionError
from fleetcron.model import source
from fleetcron.model.source import MAX_BYTES, Place, place_of, places_of, read_yaml
from tests.times.examples import AMOUNT, for_all


def refused(text: str) -> str:
    with pytest.raises(DefinitionError) as caught:
        read_yaml(text, "jobs.yaml")
    (mistake,) = caught.value.mistakes
    assert mistake.pointer == ""
    return str(mistake)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("on", "on"), ("off", "off"), ("yes", "yes"), ("No", "No"), ("y", "y"),
        ("true", True), ("False", False), ("'true'", "true"),
        ("10:30", "10:30"), ("190:20:30", "190:20:30"), ("007", "007"), ("0o7", "0o7"), ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("2026-12-25", "2026-12-25"), ("2027-01-01T09:00:00Z", "2027-01-01T09:00:00Z"), ("12-25", "12-25"),
        ("0", 0), ("-12", -12), ("+5", 5), ("0.5", 0.5), ("1e3", 1000.0), (".5", 0.5), ("5.", 5.0), ("1.2.3", "1.2.3"),
        ("", None), ("~", None), ("null", None), ("nil", "nil"), ("30s", "30s"), ("=", "="), ("!!str 5", "5"),
        (".inf", float("inf")), ("<<", "<<"), ("* * * * *", None),
    ],
)  # fmt: skip
def test_only_what_looks_like_json_is_more_than_a_text(written: str, meant: object) -> None:
    if written.startswith("* "):  # an expression without quotes is an alias to YAML: say so
        assert "column 9: not YAML: while scanning an alias" in (said := refused(f"value: {written}"))
        assert "text that begins with * needs quotes" in said
        return
    found = read_yaml(f"value: {written}", "jobs.yaml")
    assert found == {"value": meant}
    assert type(found["value"]) is type(meant)


def test_keys_are_always_texts() -> None:
    assert read_yaml("{on: 1, 5: 2, true: 3, null: 4, 2026-12-25: 5}", "") == {
        "on": 1, "5": 2, "true": 3, "null": 4, "2026-12-25": 5,
    }  # fmt: skip


def test_a_cron_expression_needs_no_quotes_unless_it_begins_with_a_star() -> None:
    assert read_yaml("cron: 0 */6 * * *", "") == {"cron": "0 */6 * * *"}


@AMOUNT
def test_json_is_read_as_what_it_is(amount: float) -> None:
    texts = st.text(st.characters(max_codepoint=0xD7FF, exclude_categories=("Cc",)), max_size=12)
    values = st.recursive(
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(-1e9, 1e9) | texts,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
        max_leaves=12,
    )

    @for_all(200 * amount, values)
    def law(value: object) -> None:
        assert read_yaml(json.dumps(value), "") == value
        assert read_yaml(json.dumps(value, ensure_ascii=False, indent=1), "") == value


@AMOUNT
def test_any_text_is_read_or_refused(amount: float) -> None:
    pieces = st.sampled_from(
        ["a", ": ", "- ", "\n", "  ", "{", "}", "[", "]", "&x ", "*x", "<<: ", "!!int ", "!t ", "'", '"', "|\n", "? ",
         ", ", "0", "1e999", "-", "#", "\t", "%YAML 1.2\n", "---\n", "...", "\ud800", "\0", "é"]
    )  # fmt: skip

    @for_all(400 * amount, st.lists(pieces, max_size=14).map("".join) | st.text(max_size=30))
    def law(text: str) -> None:
        with suppress(DefinitionError):
            json.dumps(read_yaml(text, "jobs.yaml"))


def test_the_slower_loader_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where libyaml is missing the pure one serves."""

    text = "a: [on, 10:30, 007, 5, true, ~, 0.5, 2026-12-25]\nb: &x {c: 1}\nd: {<<: *x, e: 2}"
    quick = read_yaml(text, "")
    monkeypatch.setattr(source, "_LOADER", yaml.SafeLoader)
    assert read_yaml(text, "") == quick
    assert "line 2, column 1" in refused("a: 1\na: 2")
    assert "nested deeper" in refused("[" * 5000 + "]" * 5000)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: [1", "a flow sequence that began in line 2, column 4"),
        ("jobs:\n  - name: a\n    name: b", "line 3, column 5: the key 'name' is written twice"),
        ("a: {b: 1, 'b': 2}", "line 1, column 11: the key 'b' is written twice"),
        (
            "a: !!python/object/apply:os.system [ls]",
            "line 1, column 4: !!python/object/apply:os.system is not read",
        ),
        ("a: !!binary aGk=", "!!binary is not read"),
        ("a: !secret x", "!secret is not read"),
        ("a: 1\n---\nb: 2", "line 2"),
        ("a: *b", "line 1, column 4"),
        ("? [1]\n: 2", "line 1, column 3: a key must be text"),
        ("a: &a [*a]", "an alias contains itself"),
        ("<<: 5", "<< needs a mapping"),
        ("a: !!int x", "'x' is not a number"),
        (f"a: {'9' * 5000}", "is not a number"),
        ("a: \0", "not YAML"),
        ("\ta: 1", "line 1"),
        ("a: \ud800", "not YAML"),
        ("[" * 100 + "]" * 100, "nested deeper than 64 levels"),
        ("[" * 100_000, "jobs.yaml"),
        ("a: \n" + "  - b\n" * 3 + " c: x", "line 5"),
    ],
)
def test_a_text_that_is_wrong_is_refused_with_its_place(text: str, says: str) -> None:
    assert says in refused(text)


def test_a_text_that_is_too_long_is_refused_unread() -> None:
    assert "16,777,216 at most" in refused("#" * (MAX_BYTES + 1))
    assert read_yaml("#" * MAX_BYTES, "") is None


def test_aliases_that_explode_are_refused_in_time() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    began = perf_counter()
    assert "more than 1,000,000 values" in refused("\n".join(lines))
    merged = "\n".join(
        ["m0: &m0 {k: v}", *(f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 9)}]}}" for n in range(1, 12))]
    )
    assert "more than 1,000,000 values" in refused(merged)
    deep = ["d0: &d0 []", *(f"d{n}: &d{n} {'[' * 50}*d{n - 1}{']' * 50}" for n in range(1, 200))]
    assert "nested deeper than 64 levels" in refused("\n".join(deep))
    assert perf_counter() - began < 5


def test_merged_mappings_are_under_what_is_written() -> None:
    text = "x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz: {<<: [*x, *y], c: 3}\nw: {d: 4, <<: *x, a: 5}"
    found = read_yaml(text, "")
    assert found["z"] == {"a": 1, "b": 1, "c": 3}
    assert found["w"] == {"a": 5, "b": 1, "d": 4}


def test_a_pointer_leads_to_its_line() -> None:
    text = "jobs:\n  - name: a\n    retry:\n      backoff: [30s, 2x]\n    a/b: 1\n"
    assert place_of(text, "/jobs/0/retry/backoff/1") == Place(4, 22)
    assert place_of(text, "/jobs/0/retry") == Place(3, 5)
    assert place_of(text, "/jobs/0/a~1b") == Place(5, 5)
    assert place_of(text, "/jobs/0/retry/jitter") == Place(3, 5)  # the nearest around a field that is missing
    assert place_of(text, "/jobs/7") == Place(1, 1)
    assert places_of(text, ["/jobs", "/jobs/0/name"]) == [Place(1, 1), Place(2, 5)]
    assert place_of("", "/jobs") is None
