"""Around all executors of a pool: secrets are put in where an assignment names them, and hidden in all that is told."""

from collections.abc import Callable, Sequence

from fleetcron.clock import Clock
from fleetcron.executors.assignment import Assignment, Key
from fleetcron.executors.executor import Executor
from fleetcron.executors.mask import Mask
from fleetcron.executors.reports import Declined, Done, Outbox, Report, Tell
from fleetcron.executors.vault import SecretMissing, Vault
from fleetcron.executors.verdicts import name_of
from fleetcron.model.outcome import Failed, Fault
from fleetcron.model.secret import names_in, put_in
from fleetcron.model.target import Target


class WithSecrets:
    def __init__(self, make: Callable[[Tell], Executor], vault: Vault, clock: Clock, tell: Tell) -> None:
        self._vault = vault
        self._clock = clock
        self._tell = tell
        self._outbox = Outbox(tell)
        self._masks: dict[Key, Mask] = {}
        self._inner = make(self._told)

    async def learn(self, targets: Sequence[Target]) -> None:
        await self._inner.learn(targets)

    def knows(self, target: Target) -> bool:
        return self._inner.knows(target)

    def why_not(self, target: Target) -> str | None:
        return self._inner.why_not(target)

    def start(self, assignments: Sequence[Assignment]) -> None:
        ready = [each for given in assignments if (each := self._complete(given)) is not None]
        if ready:
            self._inner.start(ready)

    def cancel(self, run_id: int, attempt: int, reason: str, grace_s: float | None = None) -> None:
        self._inner.cancel(run_id, attempt, reason, grace_s)

    def running(self) -> set[Key]:
        return self._inner.running() | self._outbox.ending()

    async def close(self, grace_s: float) -> None:
        await self._inner.close(grace_s)
        self._outbox.flush()

    def _complete(self, given: Assignment) -> Assignment | None:
        """None if its secrets cannot be put in, for whatever reason: it has failed, and the others of its batch have
        not. Of an error that is not our own only the kind is told, as its text may have a secret in it."""
        try:
            names = names_in(given.target, given.payload)
            if not names:
                return given
            secrets = {name: self._vault.read(given.tenant, name) for name in sorted(names)}
            target, payload = put_in(given.target, given.payload, secrets)
            mask = Mask(secrets.values())
        except SecretMissing as error:
            self._refuse(given.key, str(error))
            return None
        except Exception as error:
            self._refuse(given.key, f"the secrets of this attempt could not be put in: {name_of(type(error))}")
            return None
        self._masks[given.key] = mask
        return given._replace(target=target, payload=payload)

    def _refuse(self, key: Key, why: str) -> None:
        now_ms = self._clock.monotonic_ms()
        self._outbox.put(Done(*key, Failed(Fault("secret_missing", why)), now_ms, now_ms))

    def _told(self, reports: Sequence[Report]) -> None:
        if self._masks:
            reports = [told for report in reports for told in self._masked(report)]
        if reports:
            self._tell(reports)

    def _masked(self, report: Report) -> list[Report]:
        key = report.run_id, report.attempt
        mask = self._masks.get(key)
        if mask is None:
            return [report]
        if isinstance(report, Done | Declined):
            del self._masks[key]
        return mask.report(report)
