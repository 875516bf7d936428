"""Secrets by reference: found where they should be, refused where they should not, and hidden in what is told."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetcron.errors import DefinitionError
from fleetcron.executors.mask import HIDDEN, Mask
from fleetcron.executors.reports import Done, LogChunk, Progress, Report
from fleetcron.executors.vault import SecretMissing, Vault, without_secrets
from fleetcron.model.outcome import Failed, Fault, Succeeded
from fleetcron.model.reading import read_job
from fleetcron.model.secret import names_in, put_in
from fleetcron.model.target import CommandTarget, HttpTarget, PythonTarget

CANARY = "canary-5f0e9a71c2"


# -- references


def test_references_are_found_and_replaced_where_they_work() -> None:
    call = HttpTarget("https://x", headers={"Authorization": "Bearer secret://shop.token, x"}, body="a secret://b.")
    assert names_in(call, {}) == {"shop.token", "b"}
    made, _ = put_in(call, {}, {"shop.token": "T", "b": "secret://shop.token"})
    assert made == HttpTarget("https://x", headers={"Authorization": "Bearer T, x"}, body="a secret://shop.token.")
    command = CommandTarget(("x",), env={"A": "secret://a", "B": "b"})
    payload = {"deep": [{"x": "secret://c"}, 1, None], "secret://key": "plain"}
    assert names_in(command, payload) == {"a", "c"}
    assert put_in(command, payload, {"a": "1", "c": "2"}) == (
        CommandTarget(("x",), env={"A": "1", "B": "b"}),
        {"deep": [{"x": "2"}, 1, None], "secret://key": "plain"},
    )
    assert names_in(PythonTarget("m:f"), {"a": "no secret here", "n": 5}) == set()


@pytest.mark.parametrize(
    ("run", "place", "text"),
    [
        ({"command": ["curl", "secret://a"]}, "/run/command", "a secret cannot stand here"),
        ({"command": "curl secret://a", "shell": True}, "/run/command", "a secret cannot stand here"),
        ({"command": ["x"], "cwd": "/secret://a"}, "/run/cwd", "a secret cannot stand here"),
        ({"http": {"url": "https://x/?key=secret://a"}}, "/run/http/url", "a secret cannot stand here"),
        ({"http": {"url": "https://x", "headers": {"A": "secret://"}}}, "/run/http/headers/A", "names no secret"),
        ({"command": ["x"], "env": {"A": "secret://../etc"}}, "/run/env/A", "'secret://../etc' names no secret"),
    ],
)
def test_a_secret_elsewhere_is_refused_when_the_job_is_written(run: dict[str, Any], place: str, text: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        read_job({"name": "a", "schedule": {"every": "1h"}, "run": run})
    [mistake] = caught.value.mistakes
    assert mistake.pointer == place
    assert text in mistake.message
    assert mistake.hint


# -- where they are


def test_files_and_variables(tmp_path: Path) -> None:
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme/token").write_text("of acme\n")
    (tmp_path / "token").write_text("of default\r\n")
    (tmp_path / "lines").write_text("one\ntwo\n\n")
    (tmp_path / "elsewhere").write_text("from a file")
    variables = {"FLEETCRON_SECRET_SHOP_KEY": "from a variable", "FLEETCRON_SECRET_OTHER_FILE": f"{tmp_path}/elsewhere"}
    vault = Vault(str(tmp_path), variables)
    assert vault.read("acme", "token") == "of acme"
    assert vault.read("default", "token") == "of default"
    assert vault.read("default", "lines") == "one\ntwo\n"
    assert vault.read("default", "shop-key") == vault.read("default", "shop.key") == "from a variable"
    assert vault.read("default", "other") == "from a file"
    (tmp_path / "token").write_text("changed")
    assert vault.read("default", "token") == "changed"  # without a restart


def test_a_tenant_gets_only_its_own(tmp_path: Path) -> None:
    """Neither the files of others nor variables, whatever the names are."""
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme/token").write_text(CANARY)
    (tmp_path / "token").write_text(CANARY)
    vault = Vault(str(tmp_path), {"FLEETCRON_SECRET_TOKEN": CANARY, "FLEETCRON_SECRET_EVIL_TOKEN": CANARY})
    for tenant in ("evil", "acme.", "a-b"):
        with pytest.raises(SecretMissing) as caught:
            vault.read(tenant, "token")
        assert CANARY not in str(caught.value)
    with pytest.raises(SecretMissing):
        vault.read("default", "acme")  # a folder is none


def test_a_missing_one_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SecretMissing) as caught:
        Vault(None, {}).read("default", "shop-token")
    assert str(caught.value) == (
        "this worker has no secret shop-token of the tenant default: write it to <secrets.folder>/default/shop-token "
        "(the setting secrets.folder is not set), or set FLEETCRON_SECRET_SHOP_TOKEN"
    )
    with pytest.raises(SecretMissing, match=f"of the tenant acme: write it to {tmp_path}/acme/x$"):
        Vault(str(tmp_path), {}).read("acme", "x")
    for content, reason in ((b"", "is empty"), (b"\xff" + CANARY.encode(), "is not UTF-8"), (b"x" * 65_537, "larger")):
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(SecretMissing, match=reason) as caught:
            Vault(str(tmp_path), {}).read("default", "x")
        assert CANARY not in str(caught.value)


def test_processes_of_handlers_do_not_inherit_them() -> None:
    given = {"FLEETCRON_SECRET_A": CANARY, "FLEETCRON_SECRETS__FOLDER": "/x", "HOME": "/h"}
    assert without_secrets(given) == {"FLEETCRON_SECRETS__FOLDER": "/x", "HOME": "/h"}


# -- the mask


def masked(secrets: list[str], *reports: Report) -> list[Report]:
    mask = Mask(secrets)
    return [told for report in reports for told in mask.report(report)]


def chunks(*texts: str, truncated: bool = False) -> list[Report]:
    last = len(texts) - 1
    return [LogChunk(1, 1, at, text, truncated and at == last) for at, text in enumerate(texts)]


def ended(**more: Any) -> Done:
    return Done(1, 1, more.pop("outcome", Succeeded()), 0, 1, **more)


def log_of(told: list[Report]) -> str:
    found = [each for each in told if isinstance(each, LogChunk)]
    assert [each.seq for each in found] == list(range(len(found)))
    return "".join(each.text for each in found)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.text("ab*", min_size=4, max_size=7), min_size=1, max_size=3),
    st.lists(st.text("abx", max_size=9), max_size=8),
    st.data(),
)
def test_however_a_log_is_cut_no_secret_is_in_it(secrets: list[str], parts: list[str], data: st.DataObject) -> None:
    """Small alphabets, so that secrets overlap, repeat and begin each other. And what is no secret stays."""
    whole = "".join(part + data.draw(st.sampled_from(["", *secrets])) for part in parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    told = masked(secrets, *chunks(*pieces), ended(log_tail=whole, log_bytes=len(whole)))
    log = log_of(told)
    assert not any(secret in log.replace(HIDDEN, "|") for secret in secrets if "*" not in secret)
    if not any(secret in whole for secret in secrets):
        assert log == whole
    last = told[-1]
    assert isinstance(last, Done)
    assert not any(secret in last.log_tail.replace(HIDDEN, "|") for secret in secrets if "*" not in secret)


def test_a_piece_without_a_beginning_of_a_secret_is_not_held_back() -> None:
    mask = Mask([CANARY])
    [told] = mask.report(LogChunk(1, 1, 0, "line\n"))
    assert told == LogChunk(1, 1, 0, "line\n")
    assert mask.report(LogChunk(1, 1, 1, "canary-")) == []
    assert mask.report(LogChunk(1, 1, 2, "bird\n")) == [LogChunk(1, 1, 1, "canary-bird\n")]


def test_a_log_that_is_cut_in_the_middle_of_a_secret() -> None:
    assert log_of(masked([CANARY], *chunks("a " + CANARY[:9], truncated=True))) == f"a {HIDDEN}"
    [told] = masked([CANARY], ended(log_tail=CANARY[6:] + " b", log_bytes=100_000))
    assert isinstance(told, Done)
    assert told.log_tail == f"{HIDDEN} b"
    pieces = [LogChunk(1, 1, 0, "a " + CANARY[:9], truncated=True), LogChunk(1, 1, 1, CANARY[6:] + " b")]
    assert log_of(masked([CANARY], *pieces, ended())) == f"a {HIDDEN}{HIDDEN} b"


def test_results_errors_and_notes() -> None:
    quoted = 'a"b\\c\né'
    [told] = masked(
        [CANARY, quoted, "12345678"],
        ended(
            outcome=Failed(Fault("x.Broken", f"no {CANARY}", f"trace {CANARY}")),
            result_json=json.dumps({"a": [CANARY, quoted, 12345678, True, None, 5], CANARY: 1}),
        ),
    )
    assert isinstance(told, Done)
    assert told.outcome == Failed(Fault("x.Broken", f"no {HIDDEN}", f"trace {HIDDEN}"))
    assert json.loads(told.result_json or "") == {"a": [HIDDEN, HIDDEN, HIDDEN, True, None, 5], HIDDEN: 1}
    assert masked([CANARY], Progress(1, 1, 0.5, f"at {CANARY}")) == [Progress(1, 1, 0.5, f"at {HIDDEN}")]


def test_lines_of_a_long_secret_are_hidden_one_by_one() -> None:
    key = "-----BEGIN-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQ\n-----END-----"
    said = log_of(masked([key], *chunks("read MIIEvQIBADANBg and\nkqhkiG9w0BAQ\n"), ended()))
    assert said == f"read {HIDDEN} and\n{HIDDEN}\n"


def test_very_short_secrets_are_not_looked_for() -> None:
    assert log_of(masked(["abc"], *chunks("abc"), ended())) == "abc"
