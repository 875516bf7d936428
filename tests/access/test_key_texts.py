"""Keys and sessions as texts: chance that is given, a check that notices mistakes, and nothing that shows a secret."""

import re
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcron.errors import DefinitionError
from fleetcron.model.access import (
    Credential,
    KeyWish,
    Role,
    StoredKey,
    new_key,
    new_session,
    read_key,
    read_session,
)

KEY = re.compile(r"fck_[0-9a-z]{10}_[0-9A-Za-z]{49}")
SEVEN, MANY = st.binary(min_size=7, max_size=7), st.binary(min_size=32, max_size=32)


def chance(*given: bytes) -> "list[bytes]":
    return list(given)


@given(SEVEN, MANY)
def test_a_key_has_all_the_chance_that_it_was_given(first: bytes, secret: bytes) -> None:
    """256 bits of secret: each is in the text, and the text can be read again."""
    left = chance(secret, first)
    key = new_key(lambda size: _sized(left.pop(), size))
    assert left == []
    assert KEY.fullmatch(key.text)
    assert key.text.split("_")[1] == key.key_id
    assert number(key.text.split("_")[2][:43], 62) == int.from_bytes(secret, "big")
    read = read_key(key.text)
    assert read == key
    assert key.digest == sha256(key.text.encode()).hexdigest()


def _sized(data: bytes, size: int) -> bytes:
    assert len(data) == size
    return data


def number(text: str, base: int) -> int:
    letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    value = 0
    for letter in text:
        value = value * base + letters.index(letter)
    return value


@given(SEVEN, MANY, st.data())
def test_a_key_that_was_copied_badly_is_noticed(first: bytes, secret: bytes, data: st.DataObject) -> None:
    """One other letter, one that is missing, two that changed places: nobody has to be asked about it."""
    left = chance(secret, first)
    text = new_key(lambda _: left.pop()).text
    at = data.draw(st.integers(4, len(text) - 2))
    other = data.draw(st.characters(codec="utf-8"))
    swapped = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    for wrong in (text[:at] + other + text[at + 1 :], text[:at] + text[at + 1 :], swapped, f"{text} ", f"{text}\n"):
        assert wrong == text or read_key(wrong) is None


@given(st.text(max_size=80))
def test_other_texts_are_no_keys(text: str) -> None:
    assert read_key(text) is None
    assert read_session(text) is None


def test_no_two_keys_are_alike() -> None:
    keys = [new_key() for _ in range(2_000)]
    assert len({key.key_id for key in keys}) == len({key.text for key in keys}) == 2_000


def test_what_is_shown_has_no_secret() -> None:
    """Whatever is logged, formatted or raised by mistake."""
    key, token = new_key(), new_session()
    secret = key.text.split("_")[2]
    stored = StoredKey(Credential(key.key_id, "ci", Role.ADMIN), key.digest)
    for shown in (repr(key), str(key), f"{key}", repr(token), str(token), repr(stored), str([key, stored])):
        assert secret not in shown
        assert token.text not in shown
        assert key.digest not in shown


@given(MANY, MANY)
def test_sessions(one: bytes, other: bytes) -> None:
    """The token of a form follows from the session and from nothing else; it does not tell what it follows from."""
    first, second = new_session(lambda _: one), new_session(lambda _: other)
    assert read_session(first.text) == first
    assert (first.csrf == second.csrf) == (first.digest == second.digest) == (one == other)
    assert first.text not in (first.csrf, first.digest)
    assert first.csrf != first.digest
    assert read_session(first.csrf) is None


WISH = KeyWish("ci", Role.OPERATOR, "acme", lasts_ms=1, rate_per_minute=1)
WORKER = KeyWish("w", Role.WORKER, pools=("reports", "*"))


@pytest.mark.parametrize(
    ("wish", "pointers"),
    [
        (WISH, []),
        (WORKER, []),
        (replace(WISH, name="", tenant="A", lasts_ms=0, rate_per_minute=0),
         ["/name", "/tenant", "/expires_in", "/rate_per_minute"]),
        (replace(WISH, rate_per_minute=600_001), ["/rate_per_minute"]),
        (replace(WISH, pools=("reports",)), ["/pools"]),
        (replace(WORKER, pools=()), ["/pools"]),
        (replace(WORKER, tenant="acme"), ["/tenant"]),
        (replace(WORKER, pools=("Reports", "mail", "**")), ["/pools", "/pools"]),
        (replace(WORKER, pools=tuple(f"p{n}" for n in range(101))), ["/pools"]),
    ],
)  # fmt: skip
def test_mistakes_in_a_wish_are_told_at_once(wish: KeyWish, pointers: list[str]) -> None:
    if not pointers:
        wish.check()
        return
    with pytest.raises(DefinitionError) as caught:
        wish.check()
    assert [each.pointer for each in caught.value.mistakes] == pointers
