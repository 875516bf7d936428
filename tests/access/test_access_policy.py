"""What a key allows, whom it lets see, and how often it may ask: for any key and any order of requests."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcron.model.access import Credential, KeyWish, Role, StoredKey, new_key
from fleetcron.policy.access import (
    NO_SUCH_KEY,
    NOT_FOUND,
    Limiter,
    Places,
    Rate,
    Refusal,
    Uses,
    allows,
    may_claim,
    may_grant,
    rate,
    sees,
    state_of,
    take_turn,
    tenant_of,
    tenants_of,
    verify,
)

NOW = 1_800_000_000_000
TENANTS = st.sampled_from(["default", "acme", "bolt"])
PEOPLE = st.sampled_from([Role.VIEWER, Role.OPERATOR, Role.ADMIN])
INSTANTS = st.none() | st.integers(NOW - 2, NOW + 2)


@st.composite
def credentials(draw: st.DrawFn) -> Credential:
    role = draw(st.sampled_from([*Role]))
    tenant = None if role is Role.WORKER else draw(st.none() | TENANTS)
    pools = tuple(draw(st.sets(st.sampled_from(["default", "mail", "*"]), min_size=1))) if role is Role.WORKER else ()
    return Credential("0" * 10, "k", role, tenant, pools, expires_ms=draw(INSTANTS), revoked_ms=draw(INSTANTS))


# -- what


def test_roles_are_in_order_and_a_worker_is_apart() -> None:
    table = {
        (role, needed): allows(Credential("0" * 10, "k", role), needed) for role in Role for needed in Role
    }  # fmt: skip
    assert {pair for pair, allowed in table.items() if allowed} == {
        (Role.VIEWER, Role.VIEWER),
        (Role.OPERATOR, Role.VIEWER), (Role.OPERATOR, Role.OPERATOR),
        (Role.ADMIN, Role.VIEWER), (Role.ADMIN, Role.OPERATOR), (Role.ADMIN, Role.ADMIN),
        (Role.WORKER, Role.WORKER),
        (Role.PING, Role.PING), (Role.OPERATOR, Role.PING), (Role.ADMIN, Role.PING),
    }  # fmt: skip


@given(credentials(), st.none() | TENANTS)
def test_nobody_comes_to_another_tenant(credential: Credential, asked: str | None) -> None:
    """Whatever is asked, the answer is a tenant that the key sees, or the same words as about what does not exist."""
    for found in (tenant_of(credential, asked), tenants_of(credential, asked)):
        if isinstance(found, Refusal):
            assert found == NOT_FOUND
            assert credential.role is Role.WORKER or (credential.tenant is not None and asked != credential.tenant)
        else:
            assert sees(credential, found)
            assert asked is None or found == asked
            assert credential.tenant in (None, found)
    if credential.role is Role.WORKER:
        assert tenant_of(credential, asked) == tenants_of(credential, asked) == NOT_FOUND
    elif credential.tenant is not None:
        assert tenant_of(credential, None) == tenants_of(credential, None) == credential.tenant
    else:
        assert (tenant_of(credential, None), tenants_of(credential, None)) == ("default", None)


@given(credentials(), st.none() | TENANTS)
def test_sees(credential: Credential, tenant: str | None) -> None:
    """What belongs to the fleet is seen by keys of all tenants only."""
    is_person = credential.role is not Role.WORKER
    assert sees(credential, tenant) == (is_person and (credential.tenant is None or credential.tenant == tenant))


@given(credentials(), st.sampled_from(["default", "mail", "other", "*"]))
def test_only_workers_claim_and_only_from_their_pools(credential: Credential, pool: str) -> None:
    allowed = credential.role is Role.WORKER and (pool in credential.pools or "*" in credential.pools)
    assert may_claim(credential, pool) == allowed
    assert not may_claim(replace(credential, pools=()), pool)


@given(credentials(), PEOPLE, st.none() | TENANTS)
def test_nobody_grants_more_than_he_has(credential: Credential, role: Role, tenant: str | None) -> None:
    wish = KeyWish("new", role, tenant)
    granted = Credential("1" * 10, "new", role, tenant)
    if may_grant(credential, wish):
        assert credential.role is Role.ADMIN
        for each in ("default", "acme", "bolt", None):
            assert sees(credential, each) or not sees(granted, each)
    assert may_grant(Credential("0" * 10, "root", Role.ADMIN), wish)


def test_only_an_admin_of_the_fleet_makes_workers() -> None:
    wish = KeyWish("w", Role.WORKER, pools=("*",))
    assert may_grant(Credential("0" * 10, "root", Role.ADMIN), wish)
    assert not may_grant(Credential("0" * 10, "acme", Role.ADMIN, "acme"), wish)


# -- until when


@given(credentials(), st.integers(NOW - 3, NOW + 3))
def test_a_key_holds_until_the_instant_at_which_it_expires(credential: Credential, now_ms: int) -> None:
    state = state_of(credential, now_ms)
    if credential.revoked_ms is not None:
        assert state == "revoked"
    else:
        assert (state == "active") == (credential.expires_ms is None or now_ms < credential.expires_ms)


@given(credentials())
def test_only_the_right_text_opens_and_only_its_owner_hears_why_not(credential: Credential) -> None:
    key, other = new_key(), new_key()
    stored = StoredKey(credential, key.digest)
    assert verify(other, stored, NOW) == verify(other, None, NOW) == verify(key, None, NOW) == NO_SUCH_KEY
    found = verify(key, stored, NOW)
    match state_of(credential, NOW):
        case "active":
            assert found == credential
        case state:
            assert isinstance(found, Refusal)
            assert (found.code, "revoked" in found.reason) == ("unauthenticated", state == "revoked")


def test_every_way_to_compare_takes_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there is nothing to compare with: asked about before anything else is."""
    seen: list[int] = []

    def compare(one: str, other: str) -> bool:
        seen.append(len(one))
        assert len(one) == len(other)
        return one == other

    monkeypatch.setattr("hmac.compare_digest", compare)
    key = new_key()
    stored = StoredKey(Credential(key.key_id, "k", Role.VIEWER), key.digest)
    for kept in (None, stored, replace(stored, digest=new_key().digest)):
        verify(key, kept, NOW)
    assert seen == [64, 64, 64]


# -- how often


RATES = st.builds(Rate, st.integers(1, 5_000_000), st.integers(1, 20))
GAPS = st.lists(st.integers(0, 20_000), min_size=1, max_size=60)


@given(RATES, GAPS)
def test_no_stretch_has_more_than_a_burst_and_its_rate(wanted: Rate, gaps: list[int]) -> None:
    state, now, allowed = None, NOW, []
    for gap in gaps:
        now += gap
        turn = take_turn(wanted, state, now)
        state = turn.state_us
        if turn.allowed:
            allowed.append(now)
    for first, begin in enumerate(allowed):
        for last in range(first, len(allowed)):
            most = wanted.burst + (allowed[last] - begin) * 1000 // wanted.interval_us
            assert last - first + 1 <= most


@given(RATES, GAPS)
def test_who_is_refused_may_come_back_exactly_then(wanted: Rate, gaps: list[int]) -> None:
    """Not a millisecond earlier; a refusal costs nothing, and `remaining` is what may follow at once."""
    state, now = None, NOW
    for gap in gaps:
        now += gap
        turn = take_turn(wanted, state, now)
        if turn.allowed:
            following, count = turn, 0
            while count <= wanted.burst and (following := take_turn(wanted, following.state_us, now)).allowed:
                count += 1
            assert turn.remaining == count
            assert turn.retry_after_ms == 0
        else:
            assert (turn.state_us, turn.remaining) == (state, 0)
            assert take_turn(wanted, turn.state_us, now + turn.retry_after_ms).allowed
            assert not take_turn(wanted, turn.state_us, now + turn.retry_after_ms - 1).allowed
        state = turn.state_us


@given(RATES, st.integers(2, 60))
def test_who_asks_evenly_is_never_refused(wanted: Rate, count: int) -> None:
    """Evenly in whole milliseconds: that is what its clock has."""
    interval_ms = -(-wanted.interval_us // 1000)
    state: int | None = None
    for number in range(count):
        turn = take_turn(wanted, state, NOW + number * interval_ms)
        assert turn.allowed
        state = turn.state_us


@given(RATES, GAPS, st.integers(0, 10**10))
def test_a_clock_that_was_put_back_costs_a_burst_at_most(wanted: Rate, gaps: list[int], back_ms: int) -> None:
    state, now = None, NOW
    for gap in gaps:
        now += gap
        state = take_turn(wanted, state, now).state_us
    turn = take_turn(wanted, state, now - back_ms)
    assert turn.retry_after_ms * 1000 < wanted.interval_us + 1000


@given(st.integers(1, 600_000))
def test_a_rate_is_never_more_than_was_said(per_minute: int) -> None:
    wanted = rate(per_minute)
    assert 60_000_000 // wanted.interval_us <= per_minute
    assert 60_000_000 / (wanted.interval_us - 1 or 1) >= per_minute or wanted.interval_us == 1
    assert 1 <= wanted.burst <= per_minute / 6 + 1


def test_the_limiter_counts_each_key_for_itself() -> None:
    limiter = Limiter(default_per_minute=12)  # a burst of 2, then one every five seconds
    assert [limiter.take("a", None, NOW).allowed for _ in range(3)] == [True, True, False]
    assert limiter.take("a", None, NOW).retry_after_ms == 5_000
    assert limiter.take("b", None, NOW).allowed
    assert [limiter.take("c", 6, NOW).allowed for _ in range(2)] == [True, False]
    assert not limiter.take("a", None, NOW + 4_999).allowed
    assert limiter.take("a", None, NOW + 5_000).allowed


def test_places_are_shared_out_by_key_by_tenant_and_in_all() -> None:
    places = Places(most=12, each=2)
    acme = [Credential(f"a{number}", "a", Role.VIEWER, "acme") for number in range(3)]
    fleet = [Credential(f"f{number}", "f", Role.VIEWER) for number in range(6)]

    def taken(*keys: Credential) -> list[str | None]:
        said = []
        for key in keys:
            said.append(places.full(key))
            if said[-1] is None:
                leaving.append(places.take(key))
        return list(said)

    leaving: list[Callable[[], None]] = []
    assert taken(acme[0], acme[0], acme[0]) == [None, None, "key"]
    assert taken(acme[1], acme[1], acme[2]) == [None, "tenant", "tenant"]  # a quarter, with however many keys
    assert taken(*fleet[:4], *fleet[:4], fleet[4], fleet[5]) == [None] * 9 + ["node"]
    assert taken(fleet[0]) == ["key"]
    leaving[0]()
    leaving[0]()  # once more is harmless
    assert len(places) == 11
    assert taken(acme[2], fleet[5]) == [None, "node"]
    for leave in leaving:
        leave()
    assert len(places) == 0
    assert taken(acme[1]) == [None]


def test_the_limiter_keeps_only_so_many() -> None:
    """Whoever asked longest ago is forgotten; who asks all the time is not, however many others come."""
    limiter = Limiter(6, most=100)
    assert limiter.take("busy", None, NOW).allowed
    for number in range(10_000):
        limiter.take(f"key {number}", None, NOW)
        assert not limiter.take("busy", None, NOW).allowed
        assert len(limiter) <= 100
    assert limiter.take("key 0", None, NOW).allowed  # forgotten
    assert not limiter.take("key 9999", None, NOW).allowed


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40_000)), max_size=50))
def test_a_use_is_told_at_most_once_a_minute(uses: list[tuple[str, int]]) -> None:
    """And a key that is used is told within a minute of the use before."""
    kept, now = Uses(), NOW
    told: dict[str, list[int]] = {"a": [], "b": [], "c": []}
    for key_id, gap in uses:
        now += gap
        kept.note(key_id, now)
        for each in kept.take():
            assert each == key_id
            told[each].append(now)
        assert now - told[key_id][-1] < 60_000
    assert all(later - earlier >= 60_000 for each in told.values() for earlier, later in pairwise(each))
    assert kept.take() == []


def test_uses_are_collected_until_somebody_takes_them() -> None:
    kept = Uses(most=2)
    for key_id in ("a", "b", "a", "c"):
        kept.note(key_id, NOW)
    assert kept.take() == ["a", "b", "c"]
    assert kept.take() == []
