"""Settings that are each fine but make no sense together.

A node with these would lose its shards while healthy, or keep them while dead, so it does not start.
"""

from fleetcron.config.kinds import span
from fleetcron.config.settings import Config
from fleetcron.errors import Mistake


def nonsense(config: Config) -> list[Mistake]:
    store, who = config.store, config.coordination
    found = []

    def refuse(when: bool, name: str, message: str, hint: str) -> None:
        if when:
            found.append(Mistake(f"{config.source_of(name)}: {name}", message, hint))

    refuse(
        who.heartbeat_s > who.lease_ttl_s / 3,
        "coordination.heartbeat",
        f"{span(who.heartbeat_s)} is more than a third of the lease ({span(who.lease_ttl_s)}): "
        "one late renewal would cost the shards",
        f"write {span(who.lease_ttl_s / 3)} or less, or a longer coordination.lease_ttl",
    )
    refuse(
        store.statement_timeout_s > who.lease_ttl_s / 4,
        "store.deadline",
        f"{span(store.deadline_s)} makes a statement timeout of {span(store.statement_timeout_s)} (seven tenths), "
        f"more than a quarter of the lease ({span(who.lease_ttl_s)}): one slow statement would cost the shards",
        f"write {span(int(who.lease_ttl_s / 4 / 0.7 * 10) / 10)} or less, or a longer coordination.lease_ttl",
    )
    refuse(
        who.heartbeat_s + store.deadline_s + who.margin_s > who.lease_ttl_s,
        "coordination.lease_ttl",
        f"{span(who.lease_ttl_s)} is shorter than a heartbeat, a renewal that hangs and the margin together "
        f"({span(who.heartbeat_s)} + {span(store.deadline_s)} + {span(who.margin_s)}): "
        "one lost connection would cost the shards",
        "write a longer coordination.lease_ttl, or a shorter store.deadline",
    )
    refuse(
        who.node_ttl_s < 3 * who.heartbeat_s,
        "coordination.node_ttl",
        f"{span(who.node_ttl_s)} is less than three heartbeats ({span(who.heartbeat_s)} each): "
        "a node would count as gone while it lives",
        f"write {span(3 * who.heartbeat_s)} or more",
    )
    refuse(
        who.skew_warn_ms >= who.skew_refuse_ms,
        "coordination.skew_warn",
        f"{span(who.skew_warn_ms / 1000)} is not below coordination.skew_refuse ({span(who.skew_refuse_ms / 1000)}): "
        "nobody would be warned before it matters",
        "write less",
    )
    worker = config.worker
    refuse(
        worker.renew_s > worker.lease_ttl_s / 3,
        "worker.renew",
        f"{span(worker.renew_s)} is more than a third of the lease ({span(worker.lease_ttl_s)}): "
        "one late renewal would stop all work",
        f"write {span(worker.lease_ttl_s / 3)} or less, or a longer worker.lease_ttl",
    )
    refuse(
        store.statement_timeout_s > worker.lease_ttl_s / 4,
        "worker.lease_ttl",
        f"{span(worker.lease_ttl_s)} is less than four statement timeouts ({span(store.statement_timeout_s)} each): "
        "one slow statement would stop all work",
        f"write {span(4 * store.statement_timeout_s)} or more, or a shorter store.deadline",
    )
    return found
