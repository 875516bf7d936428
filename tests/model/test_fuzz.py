"""Any value that JSON can hold is a document, or a DefinitionError: nothing else is ever raised."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from fleetcron.errors import DefinitionError, Mistake
from fleetcron.model.definition import Definition
from fleetcron.model.reading import read_definitions, read_job, report
from tests.model.documents import definitions
from tests.times.examples import AMOUNT, for_all

WORDS = st.sampled_from(
    ["name", "schedule", "cron", "every", "at", "run", "python", "command", "http", "url", "publish", "payload",
     "retry", "backoff", "exponential", "first", "misfire", "policy", "overlap", "calendars", "holidays", "windows",
     "repeated", "from", "to", "for", "jobs", "tenant", "timezone", "jitter", "start_deadline", "depends_on", "derived",
     "env", "ics"]
)  # fmt: skip
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([10**4200, -(10**30), "\ud800", "\0", "", "x" * 5000, "0 2 * * *", "1h", "2027-01-01T00:00:00Z",
                       "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "{{ x", "a", "12-25", "all", "1e9d"])
    | st.text(st.characters(), max_size=8)
    | WORDS
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(WORDS | st.text(st.characters(), max_size=3), inner, max_size=5)
        | st.dictionaries(st.integers() | st.none(), inner, max_size=2)
    ),
    max_leaves=25,
)


def read_or_refused(read: Callable[[object], object], raw: object) -> None:
    mistakes = refused(read, raw)
    assert mistakes is None or mistakes
    assert all(mistake.pointer == "" or mistake.pointer.startswith("/") for mistake in mistakes or ())
    report(mistakes or ()).encode()


def refused(read: Callable[[object], object], raw: object) -> list[Mistake] | None:
    try:
        read(raw)
    except DefinitionError as error:
        return error.mistakes
    return None


@AMOUNT
def test_any_value_is_a_document_or_refused(amount: float) -> None:
    @for_all(300 * amount, VALUES)
    def law(raw: object) -> None:
        read_or_refused(read_definitions, raw)
        read_or_refused(read_job, raw)
        read_or_refused(read_definitions, {"jobs": [raw], "calendars": [raw]})


@AMOUNT
def test_a_good_document_with_something_else_in_one_place_is_a_document_or_refused(amount: float) -> None:
    """The deeper places are reached from a document that is right."""

    @for_all(300 * amount, definitions(), VALUES, st.data())
    def law(definition: Definition, value: object, data: st.DataObject) -> None:
        raw = definition.as_document()
        before = deepcopy(raw)
        path = data.draw(st.sampled_from(list(places(raw))))
        inside: Any = raw
        for part in path[:-1]:
            inside = inside[part]
        inside[path[-1]] = value
        kept = deepcopy(raw)
        read_or_refused(read_job, raw)
        assert repr(raw) == repr(kept), "what was given is not changed"
        assert read_job(before) == definition


def places(value: object, path: tuple = ()) -> Any:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*path, key)
        yield from places(each, (*path, key))
