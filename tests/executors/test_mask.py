"""The mask finds secrets, and what may be a part of one, exactly as the slow, obvious way does."""

from hypothesis import given
from hypothesis import strategies as st

from fleetcron.executors.mask import HIDDEN, SHORTEST, Mask

SECRETS = st.lists(st.text("ab\n", min_size=SHORTEST, max_size=24), max_size=3)
TEXTS = st.text("ab\n", max_size=30)  # a small alphabet, so that beginnings repeat inside of secrets


@given(SECRETS, TEXTS)
def test_how_much_of_a_text_may_become_a_secret(secrets: list[str], text: str) -> None:
    mask = Mask(secrets)
    begun = [
        length for form in mask._forms for length in range(1, len(form)) if text[-length:] == form[:length]
    ]  # never a whole secret: that one is hidden already
    assert mask._begun(text) == max(begun, default=0)


@given(SECRETS, TEXTS)
def test_how_much_of_a_text_may_be_the_end_of_a_secret(secrets: list[str], text: str) -> None:
    mask = Mask(secrets)
    longest = max((len(form) for form in mask._forms), default=0)
    ends = [
        length
        for length in range(SHORTEST, min(len(text), longest - 1) + 1)
        if any(form.endswith(text[:length]) for form in mask._forms)
    ]
    assert mask._without_end(text) == (HIDDEN + text[max(ends) :] if ends else text)


@given(SECRETS, TEXTS)
def test_of_two_secrets_that_begin_alike_the_longer_one_is_hidden(secrets: list[str], text: str) -> None:
    mask = Mask(secrets)
    slow, at = "", 0
    while at < len(text):
        fitting = [form for form in mask._forms if text.startswith(form, at)]
        slow += HIDDEN if fitting else text[at]
        at += max(map(len, fitting), default=1)
    assert mask.text(text) == slow


def test_a_long_secret_is_found_at_both_ends_of_a_long_text() -> None:
    """Each length tried on each line of the secret took 2 s with one of 16 KiB, on the loop of the worker."""
    lines = [f"{number:04}{'abcdefghijklmno' * 4}" for number in range(256)]
    secret, log = "\n".join(lines), "an ordinary line of a log\n" * 2400
    mask = Mask([secret])
    for length in (1, 63, 10_000, len(secret) - 1):
        assert mask._begun(log + secret[:length]) == length
        assert mask._without_end(secret[-length:] + log) == (HIDDEN + log if length > 3 else secret[-length:] + log)
    assert mask._begun(log) == 0
    assert mask._without_end(log) == log
