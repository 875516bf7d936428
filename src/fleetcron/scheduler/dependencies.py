"""Which changes of jobs their dependencies forbid: cycles, upstream jobs that nobody knows, and the end of jobs in use.

What is decided here is about a picture of the dependencies; `Jobs.amend` writes only if it is still right.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import Final, TypeAlias

from fleetcron.model.amendment import Amendment
from fleetcron.model.definition import Definition
from fleetcron.policy import depends
from fleetcron.store.upstreams import Around

Name: TypeAlias = tuple[str, str]

Needs: TypeAlias = Mapping[Name, Collection[str]]

_SHOWN: Final = 5


def asked(amendments: Mapping[Name, Amendment]) -> tuple[list[Name], list[Name]]:
    """Where a picture of the dependencies has to begin, and whose dependants it has to show."""
    starts: list[Name] = []
    for name, made in amendments.items():
        if made.changes_dependencies:
            starts += [name, *((name[0], need) for need in made.after.job.definition.depends_on)]
    return starts, [name for name, made in amendments.items() if made.action in ("cancel", "delete")]


def refusals(
    amendments: Mapping[Name, Amendment], around: Around, beside: Sequence[Definition] = (), needs: Needs | None = None
) -> dict[Name, str]:
    """`beside` are jobs that count as stored, although they are not: those that a dry run has not written. `needs` has
    what jobs depend on that a dry run has changed or deleted, although the store says otherwise."""
    refused = {name: _needed(some) for name, each in around.dependants.items() if (some := _left(name, each, needs))}
    wanted = {
        name: made.after.job.definition.depends_on
        for name, made in amendments.items()
        if made.changes_dependencies or made.before is None
    }
    stored = {**around.edges, **{(each.tenant, each.name): each.depends_on for each in beside}}
    for tenant, names in groupby(sorted(wanted), key=lambda name: name[0]):
        own = {name[1]: wanted[name] for name in names}
        of_tenant = {name: needs for (whose, name), needs in stored.items() if whose == tenant}
        refused |= {(tenant, name): why for name, why in depends.refusals(own, of_tenant).items()}
    return refused


def upstream_first(definitions: Sequence[Definition]) -> list[Definition]:
    """In an order in which they can be written one after the other."""
    known = {(each.tenant, each.name): each for each in definitions}
    edges = {name: [(name[0], need) for need in each.depends_on] for name, each in known.items()}
    return [known[name] for name in depends.upstream_first(edges)]


def _left(name: Name, dependants: Sequence[str], needs: Needs | None) -> list[str]:
    """Those that still depend on a job."""
    return [each for each in dependants if needs is None or name[1] in needs.get((name[0], each), (name[1],))]


def _needed(names: Sequence[str]) -> str:
    more = " and others" if len(names) > _SHOWN else ""
    verb = "depends" if len(names) == 1 else "depend"
    return f"{', '.join(names[:_SHOWN])}{more} {verb} on it; change or delete what depends on it first"
