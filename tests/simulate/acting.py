"""What handlers do: decided by the job, its tick and the attempt alone, so that it is the same whoever runs them."""

from random import Random

from fleetcron.executors.assignment import Assignment
from fleetcron.model.outcome import Failed, Fault, Snoozed
from fleetcron.simulate.work import Act
from tests.simulate.jobs import LATE_HANDLER
from tests.simulate.scenario import Scenario

BOOM = Failed(Fault("boom", "as it was told to"))


class Acting:
    """`is_healed`: from then on every handler is there."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self.is_healed = False

    def knows(self, function: str) -> bool:
        return self.is_healed or not function.startswith(LATE_HANDLER)

    def act(self, assignment: Assignment, node: str) -> Act:
        manner = self._scenario.manners[assignment.job]
        chance = Random(
            f"{self._scenario.seed}/working/{assignment.job}/{assignment.scheduled_for_ms}/{assignment.attempt}"
        )
        seconds = chance.uniform(*manner.seconds)
        stops_s = chance.choice((0.0, 0.05, 0.5))
        match manner.kind:
            case "flaky" if chance.random() < 0.4:
                return Act(seconds, BOOM, stops_s)
            case "poison":
                return Act(min(seconds, 0.5), BOOM, stops_s)
            case "hang" if chance.random() < 0.3:
                return Act(3600.0, stops_s=stops_s)
            case "deaf" if chance.random() < 0.3:
                return Act(3600.0, stops_s=None)
            case "deaf":
                return Act(seconds, stops_s=None)
            case "snooze" if assignment.attempt < 3 and chance.random() < 0.3:
                return Act(seconds, Snoozed(chance.uniform(1, 8)), stops_s)
        return Act(seconds, stops_s=stops_s)
