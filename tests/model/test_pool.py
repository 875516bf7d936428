"""Pools: what may be set, and every mistake at once."""

import pytest

from fleetcron.errors import DefinitionError
from fleetcron.model.pool import FIELDS, Pool, read_pool


def test_what_is_not_said_stays_as_it_is() -> None:
    """S3-57, S3-61, S3-62: a pool for each kind of work, with quotas by tenant and by type."""
    first = read_pool("reports", {"slots": 20, "per_type": {"shop.jobs:export": 2, "mail": 5}})
    assert first == Pool("reports", 20, None, {"mail": 5, "shop.jobs:export": 2})
    second = read_pool("reports", {"per_tenant": 4, "slots": None, "per_type": {"mail": None, "bill": 1}}, first)
    assert second == Pool("reports", None, 4, {"bill": 1, "shop.jobs:export": 2})
    assert set(second.as_document()) == set(FIELDS)
    assert read_pool("reports", second.as_document()) == second
    assert read_pool("reports", {"per_type": {"never-there": None}}) == Pool("reports")


def test_every_mistake_at_once() -> None:
    with pytest.raises(DefinitionError) as caught:
        read_pool("a b", {"slots": 0, "per_tenant": "2", "per_type": {"x": 0, "a\nb": 1}, "slot": 1})
    assert [str(mistake) for mistake in caught.value.mistakes] == [
        "/name: 'a b' is not a name of a pool; small letters, digits, dots, dashes and underscores, 200 at most, a"
        " letter or digit first",
        "/slot: a pool has no such field; did you mean slots?",
        "/slots: 0 is less than 1, the least that is allowed",
        "/per_tenant: must be a whole number, not '2'",
        "/per_type/x: 0 is less than 1, the least that is allowed",
        "/per_type: 'a\\nb' is not a type; one line of 1 to 200 characters, none of them a control character",
    ]


def test_quotas_are_a_mapping() -> None:
    with pytest.raises(DefinitionError, match="must be a mapping, not 5"):
        read_pool("p", {"per_type": 5})
