"""The way between nodes and database: delays, losses, cuts, and requests that arrive after their sender gave up."""

from dataclasses import dataclass, field
from random import Random

from fleetcron.simulate.database import Trip


@dataclass
class Network:
    """Processes are named slot.life; faults are about slots. Shares are of all requests."""

    chance: Random
    deadline_s: float
    no_way_there: set[str] = field(default_factory=set)  # slots whose requests get lost
    no_way_back: set[str] = field(default_factory=set)
    lost_there: float = 0.0
    lost_back: float = 0.0
    late: float = 0.0
    slow: float = 0.0
    aimed: dict[str, tuple[str, float]] = field(default_factory=dict)  # by verb: there, back, late, slow; and a share

    def trip(self, process: str, verb: str) -> Trip:
        there_s: float | None = self._delay_s()
        back_s: float | None = self._delay_s()
        if self.late and self.chance.random() < self.late:  # carried out long after its sender gave up
            return self._too_late()
        if verb in self.aimed and self.chance.random() < self.aimed[verb][1]:
            match self.aimed[verb][0]:
                case "late":
                    return self._too_late()
                case "there":
                    return Trip(None, None)
                case "back":
                    return Trip(there_s, None)
                case "slow":
                    return Trip(there_s, 0.95 * self.deadline_s)
        slot = process.partition(".")[0]
        if slot in self.no_way_there or (self.lost_there and self.chance.random() < self.lost_there):
            there_s = None
        if slot in self.no_way_back or (self.lost_back and self.chance.random() < self.lost_back):
            back_s = None
        return Trip(there_s, back_s)

    def hint_s(self, process: str) -> float | None:
        slot = process.partition(".")[0]
        lost = self.lost_back and self.chance.random() < self.lost_back
        return None if slot in self.no_way_back or lost else self._delay_s()

    def heal(self) -> None:
        self.no_way_there.clear()
        self.no_way_back.clear()
        self.aimed.clear()
        self.lost_there = self.lost_back = self.late = self.slow = 0.0

    def _too_late(self) -> Trip:
        return Trip(self.deadline_s + self.chance.uniform(0.0, 9.0), None)

    def _delay_s(self) -> float:
        if self.slow and self.chance.random() < self.slow:
            return self.chance.uniform(0.05, 0.8) * self.deadline_s
        return self.chance.uniform(0.0002, 0.002)
