"""Secrets that cannot be read or put in: the attempt fails and says why, and nobody else waits for it."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fleetcron.clock import SystemClock
from fleetcron.config import ExecutorConfig
from fleetcron.executors.command import Commands
from fleetcron.executors.programs import Programs
from fleetcron.executors.reports import Done
from fleetcron.executors.vault import SecretMissing, Vault
from fleetcron.executors.with_secrets import WithSecrets
from fleetcron.model.outcome import Failed, Succeeded
from tests.executors.stage import ENVIRONMENT, Heard, assignment, shell

CANARY = "canary-5f0e9a71c2"
TOO_LONG = "x" * 300  # no folder can have this name, and looking for it is an error, also for root


def test_a_folder_that_cannot_be_searched_is_said_and_no_other_place_is_asked(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    variables = {"FLEETCRON_SECRET_TOKEN": CANARY}
    for folder, reason in ((TOO_LONG, "File name too long"), ("loop", "Too many levels of symbolic links")):
        vault = Vault(str(tmp_path / folder), variables)
        for tenant in ("acme", "default"):
            with pytest.raises(SecretMissing, match=f"the secret token cannot be read: .*/{tenant}/token: {reason}$"):
                vault.read(tenant, "token")


def test_what_is_no_folder_and_a_link_to_nowhere_have_no_secrets(tmp_path: Path) -> None:
    """These are not there, so the next place is asked."""
    (tmp_path / "default").write_text("a file where the folder of the tenant would be")
    (tmp_path / "token").symlink_to(tmp_path / "gone")
    assert Vault(str(tmp_path), {"FLEETCRON_SECRET_TOKEN": CANARY}).read("default", "token") == CANARY


def ends_of(vault: Vault, *payloads: Mapping[str, Any]) -> list[Done]:
    async def scenario() -> list[Done]:
        heard, programs, clock = Heard(), Programs(ENVIRONMENT), SystemClock()
        executor = WithSecrets(
            lambda tell: Commands(programs, ExecutorConfig(), ENVIRONMENT, clock, tell), vault, clock, heard.tell
        )
        try:
            executor.start([assignment(shell("cat"), at, payload=payload) for at, payload in enumerate(payloads)])
            ends = await heard.ends(len(payloads))
            assert executor.running() == set()
            return [ends[at, 1] for at in range(len(payloads))]
        finally:
            await executor.close(0)
            await programs.close()

    return asyncio.run(scenario())


def test_a_folder_that_cannot_be_searched_keeps_nobody_else_from_starting(tmp_path: Path) -> None:
    refused, other = ends_of(Vault(str(tmp_path / TOO_LONG)), {"token": "secret://token"}, {"plain": "text"})
    assert isinstance(refused.outcome, Failed)
    assert refused.outcome.error.code == "secret_missing"
    assert refused.outcome.error.text.endswith("token: File name too long")
    assert other.outcome == Succeeded()


def test_whatever_goes_wrong_with_the_secrets_of_one_the_others_start(tmp_path: Path) -> None:
    """Here: a payload that is deeper than Python likes to go. The text says what it was, and nothing of the secret."""
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme/token").write_text(CANARY)
    deep: Any = "secret://token"
    for _ in range(5000):
        deep = [deep]
    refused, other = ends_of(Vault(str(tmp_path)), {"deep": deep}, {"token": "secret://token"})
    assert isinstance(refused.outcome, Failed)
    assert refused.outcome.error.code == "secret_missing"
    assert refused.outcome.error.text == "the secrets of this attempt could not be put in: RecursionError"
    assert (other.outcome, other.log_tail) == (Succeeded(), '{"token":"***"}')
