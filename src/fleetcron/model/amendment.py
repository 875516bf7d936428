"""A change of a job, decided and ready to be written: what it becomes, where it stands, what its past leaves behind."""

from dataclasses import dataclass
from typing import Literal

from fleetcron.model.answer import Answer, Gap
from fleetcron.model.rules import MisfirePolicy
from fleetcron.model.standing import Standing

Action = Literal["create", "edit", "pause", "resume", "cancel", "delete", "hand_over", "shadow"]


@dataclass(frozen=True, slots=True)
class Amendment:
    """`gaps` are under the rules that held before. `notice` lets gaps be decided that waited for a resume or an end.

    The forecasts after `at_ms` are withdrawn with it, always: whoever plans next plans again, under the new rules.
    """

    action: Action
    actor: str
    at_ms: int
    before: Standing | None
    after: Standing
    gaps: tuple[Gap, ...] = ()
    answers: tuple[Answer, ...] = ()
    notice: MisfirePolicy | Literal["cancel"] | None = None

    @property
    def changes_dependencies(self) -> bool:
        """Whether the job comes to depend on other jobs than before."""
        before = () if self.before is None else self.before.job.definition.depends_on
        return before != self.after.job.definition.depends_on
