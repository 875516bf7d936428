"""The executors of one pool, put together from the settings."""

from collections.abc import Callable, Mapping

from fleetcron.clock import Clock
from fleetcron.config import ExecutorConfig
from fleetcron.config.kinds import secret_bytes
from fleetcron.executors.by_target import ByTarget
from fleetcron.executors.command import Commands
from fleetcron.executors.executor import Executor
from fleetcron.executors.handler_hosts import HandlerHosts
from fleetcron.executors.handlers import Handlers
from fleetcron.executors.http import HttpCalls, SecretOf
from fleetcron.executors.inline import Inline
from fleetcron.executors.programs import Programs
from fleetcron.executors.reports import Tell
from fleetcron.executors.signature import key_of
from fleetcron.executors.vault import Vault
from fleetcron.executors.with_secrets import WithSecrets
from fleetcron.model.target import CommandTarget, HttpTarget, PythonTarget


def executors(
    programs: Programs,
    config: ExecutorConfig,
    environment: Mapping[str, str],
    clock: Clock,
    functions: Mapping[str, Callable[..., object]] | None = None,
    vault: Vault | None = None,
    store_url: str | None = None,
) -> Callable[[str, int, Tell], Executor]:
    """For a worker, which asks for one for each of its pools. `functions` are those that this process has already: only
    `isolation: inline` can use them. Without a vault there are no secrets. `store_url` is for handlers:
    what they ask for goes there, and guarded writes look there for their lease."""

    def make(pool: str, slots: int, tell: Tell) -> Executor:
        del pool
        return WithSecrets(lambda masked: by_target(slots, masked), vault or Vault(), clock, tell)

    def by_target(slots: int, tell: Tell) -> Executor:
        return ByTarget(
            {
                PythonTarget: python(slots, tell),
                CommandTarget: Commands(programs, config, environment, clock, tell),
                HttpTarget: HttpCalls(config, clock, tell, _signing(config)),
            },
            tell,
        )

    def python(slots: int, tell: Tell) -> Executor:
        if config.isolation == "host":
            return HandlerHosts(programs, config, slots, environment, clock, tell, store_url)
        handlers = Handlers(config.handlers)
        for name, function in (functions or {}).items():
            handlers.add(name, function)
        return Inline(handlers, config, slots, clock, tell, store_url)

    return make


def _signing(config: ExecutorConfig) -> SecretOf | None:
    if config.signing_secret is None:
        return None
    secret = secret_bytes(config.signing_secret)
    return lambda assignment: key_of(secret, assignment.tenant)
