"""What can go wrong, by name.

FleetcronError
└── ScheduleError      a WHEN that cannot be: bad expression, zone, policy or calendar (also a ValueError)
"""


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
