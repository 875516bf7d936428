"""Which Python functions an operator allows. An entry of the list allows `shop.jobs:report` (one function), `shop.jobs`
(every function that is written in that module) or `shop.*` (in that package). Pure."""

from collections.abc import Sequence


def is_allowed(name: str, allowed: Sequence[str]) -> str | None:
    """The entry that allows it."""
    module = module_of(name)
    return next((one for one in allowed if (one == name if ":" in one else is_within(module, one))), None)


def named(allowed: Sequence[str]) -> list[str]:
    """The single functions of the list, which are looked for at the start."""
    return [entry for entry in allowed if ":" in entry]


def module_of(name: str) -> str:
    return name.partition(":")[0]


def is_within(module: str, entry: str) -> bool:
    package = entry.removesuffix(".*")
    return module == package or (entry != package and module.startswith(f"{package}."))


def not_allowed(name: str) -> str:
    return f"{name} is not among the handlers of this worker; add it to executor.handlers"
