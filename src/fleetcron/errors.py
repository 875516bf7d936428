"""What can go wrong, by name.

FleetcronError
├── ScheduleError        a WHEN that cannot be: bad expression, zone, policy or calendar (also a ValueError)
├── DefinitionError      a job or calendar that cannot be, with every mistake at once
├── ConfigError          settings that cannot be, with every mistake at once
├── RefusedError         what was asked is not allowed now: no such job, the name is taken, somebody else was faster
├── LeaseLost            a guarded write of an attempt that is over: its run may have gone to another worker
└── StoreError           the database
    ├── StoreUnavailable   cannot be reached, is full, read-only or held by another: nothing was written, try again
    └── SchemaError        the tables are older or newer than this program, or a job in them is newer
"""

from dataclasses import dataclass


class FleetcronError(Exception):
    """Everything that fleetcron raises on purpose."""


class ScheduleError(FleetcronError, ValueError):
    """A schedule that cannot be, with the mistake, its place and what to write instead.

    `source` is the text that was read; `start` and `end` mark the mistake in it, so that a terminal can point at it.
    """

    def __init__(
        self, mistake: str, *, hint: str | None = None, source: str | None = None, start: int = 0, end: int = 0
    ) -> None:
        self.mistake = mistake
        self.hint = hint
        self.source = source
        self.start = start
        self.end = end
        super().__init__(f"{mistake}; {hint}" if hint else mistake)

    def pointer(self) -> str | None:
        """Two lines, the text and a marker under the mistake; None when there is no place to show."""
        if self.source is None or self.end <= self.start:
            return None
        # one column for each character, also for a tab
        shown = "".join(character if character.isprintable() else " " for character in self.source)
        return f"{shown}\n{' ' * self.start}{'^' * (self.end - self.start)}"


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in a document: where (a JSON pointer such as `/jobs/0/retry/backoff/1`), what, and what to write."""

    pointer: str
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        text = f"{self.pointer}: {self.message}" if self.pointer else self.message
        return f"{text}; {self.hint}" if self.hint else text


class _MistakesError(FleetcronError, ValueError):
    def __init__(self, mistakes: list[Mistake]) -> None:
        self.mistakes = mistakes
        super().__init__("\n".join(map(str, mistakes)))


class DefinitionError(_MistakesError):
    """A job or calendar that cannot be. `mistakes` has all of them."""


class ConfigError(_MistakesError):
    """Settings that cannot be. `mistakes` has all of them."""


class RefusedError(FleetcronError):
    """What was asked is not allowed now; nothing was changed."""


class LeaseLost(FleetcronError):
    """This attempt does not hold its run any more: what it was about to write was rolled back."""


class StoreError(FleetcronError):
    """Something is wrong with the database; `hint` says what to do."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message}; {hint}" if hint else message)


class StoreUnavailable(StoreError):
    """The database cannot answer now. Nothing was written; asking again later is right."""


class SchemaError(StoreError):
    """The tables, or what stands in one of them, are not what this program knows."""
