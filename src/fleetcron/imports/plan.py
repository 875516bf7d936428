"""What an import found: jobs that can be applied, and what could not be taken over as it was.

`left_out`: there is no job for it. `differs`: there is a job, and something about it is not as it was, or is to be done
by hand. `note`: worth knowing before the old scheduler is switched off.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from fleetcron.errors import DefinitionError
from fleetcron.imports.naming import Names
from fleetcron.model.reading import read_job
from fleetcron.model.tenant import DEFAULT_TENANT
from fleetcron.model.writing import instant_text

Level = Literal["left_out", "differs", "note"]
Document = dict[str, Any]
# None of the four schedulers ends a job after a time, or only if it is told to. Ours always has a timeout; this one is
# long enough to be no trap on the first night.
NO_TIMEOUT: Final = "1d"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where something was written: a file and a line, or the name of an entry where there are no lines."""

    file: str
    line: int | None = None
    entry: str | None = None

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return where if self.entry is None else f"{where} ({self.entry})"


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    text: str
    hint: str | None = None
    origin: Origin | None = None
    job: str | None = None

    def __str__(self) -> str:
        return f"{self.text}; {self.hint}" if self.hint else self.text


@dataclass(frozen=True, slots=True)
class Wish:
    """What holds for every job of an import.

    `defaults`: do not write down how the old scheduler treats overlaps, misses, failures and clock changes, so that
    fleetcron's own defaults hold. `hand_over_ms`: no tick before this instant; the old scheduler has those. `shadow`:
    the old scheduler goes on, and the ticks that it has are noted: until the instant, or until it is handed over.
    """

    tenant: str | None = None
    pool: str | None = None
    prefix: str = ""
    defaults: bool = False
    hand_over_ms: int | None = None
    shadow: bool = False
    ping: str = "fleetcron ping"  # how it is called in a crontab


@dataclass(frozen=True, slots=True)
class ImportedJob:
    origin: Origin
    document: Document
    findings: Sequence[Finding] = ()

    @property
    def name(self) -> str:
        return str(self.document["name"])

    @property
    def full_name(self) -> tuple[str, str]:
        return str(self.document.get("tenant", DEFAULT_TENANT)), self.name


@dataclass(frozen=True, slots=True)
class Pinged:
    """A crontab with pings put in: its new text, and the lines that changed by number, new and old."""

    file: str
    text: str
    lines: Mapping[int, str]
    before: Mapping[int, str] = field(default_factory=dict)

    def without(self, numbers: Set[int]) -> "Pinged":
        """The same, but these lines are as they were."""
        text = self.text.split("\n")
        for number in numbers & self.before.keys():
            text[number - 1] = self.before[number]
        lines = {number: line for number, line in self.lines.items() if number not in numbers}
        return Pinged(self.file, "\n".join(text), lines, self.before)


@dataclass(slots=True)
class Plan:
    """Jobs and findings, in the order of the source."""

    wish: Wish = field(default_factory=Wish)
    jobs: list[ImportedJob] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)  # those that belong to no job
    names: Names = field(default_factory=Names)
    pinged: list[Pinged] = field(default_factory=list)
    places: dict[Path, str] = field(default_factory=dict)  # where a crontab with pings is to be written, and which

    def add(
        self,
        origin: Origin,
        name: str,
        document: Mapping[str, Any],
        findings: Sequence[Finding] = (),
        kept: bool = False,
    ) -> None:
        """A job, under this name or the nearest that is free, or just under a name that was `kept` for it. If it is no
        job of ours after all, it is left out."""
        taken = name if kept else self.names.take(self.wish.prefix + name)
        whole: Document = {"name": taken, **self._common(document)}
        try:
            read_job(whole)
        except DefinitionError as error:
            for mistake in error.mistakes:
                self.leave_out(origin, f"{mistake.pointer}: {mistake.message}", mistake.hint, job=taken)
            return
        placed = [Finding(each.level, each.text, each.hint, origin, taken) for each in findings]
        self.jobs.append(ImportedJob(origin, whole, placed))

    def leave_out(self, origin: Origin, text: str, hint: str | None = None, job: str | None = None) -> None:
        self.findings.append(Finding("left_out", text, hint, origin, job))

    def say(self, level: Level, text: str, hint: str | None = None, origin: Origin | None = None) -> None:
        """Once, however often it is found."""
        found = Finding(level, text, hint, origin)
        if found not in self.findings:
            self.findings.append(found)

    def stand_back(self, names: Set[tuple[str, str]]) -> None:
        """These jobs, by tenant and name, are somebody else's: no line pings them."""
        lines = {(job.origin.file, job.origin.line) for job in self.jobs if job.full_name in names}
        self.pinged = [
            each.without({line for file, line in lines if file == each.file and line is not None})
            for each in self.pinged
        ]

    @property
    def files(self) -> dict[Path, str]:
        """What is to be written beside the YAML."""
        texts = {each.file: each.text for each in self.pinged}
        return {path: texts[file] for path, file in self.places.items()}

    def all_findings(self) -> Iterator[Finding]:
        yield from self.findings
        for job in self.jobs:
            yield from job.findings

    def as_document(self) -> Document:
        """What `fleetcron apply` reads."""
        return {"jobs": [job.document for job in self.jobs]}

    def _common(self, document: Mapping[str, Any]) -> Document:
        wish, whole = self.wish, dict(document)
        if wish.tenant is not None:
            whole = {"tenant": wish.tenant, **whole}
        if wish.pool is not None:
            whole["pool"] = wish.pool
        if wish.shadow:
            whole["shadow"] = True if wish.hand_over_ms is None else instant_text(wish.hand_over_ms)
        elif wish.hand_over_ms is not None:
            # a text sorts like its instant only in one form, and the source may have written another
            ours, theirs = instant_text(wish.hand_over_ms), whole.get("starts_at")
            whole["starts_at"] = ours if theirs is None else later(str(theirs), str(ours))
        return whole


def later(one: str, other: str) -> str:
    """The later of two instants that `instant_text` wrote."""
    return max(one, other, key=lambda text: (text.rstrip("Z"), text))
