"""What waits for a handler host, in the order in which it came; suspects wait apart, for hosts of their own. Pure."""

from collections import deque
from collections.abc import Set

from fleetcron.executors.assignment import Assignment, Key


class Waiting:
    def __init__(self) -> None:
        self.queue: deque[Assignment] = deque()
        self.suspected: deque[Assignment] = deque()

    def sort_out(self, suspects: Set[str]) -> None:
        """Also those that are no suspects any more; they have waited longer than who came among the others."""
        waiting = [*self.suspected, *self.queue]
        self.suspected.clear()
        self.queue.clear()
        for one in waiting:
            (self.suspected if wanted(one) in suspects else self.queue).append(one)

    def take(self, most: int, misses: Set[str]) -> list[Assignment]:
        """The first ones that are not missed; the others stay in their order."""
        queue = self.queue
        if not misses:
            return [queue.popleft() for _ in range(min(most, len(queue)))]
        taken: list[Assignment] = []
        for _ in range(len(queue)):
            one = queue.popleft()
            if len(taken) < most and wanted(one) not in misses:
                taken.append(one)
            else:
                queue.append(one)
        return taken

    def take_suspect(self, function: str) -> Assignment | None:
        for one in self.suspected:
            if wanted(one) == function:
                self.suspected.remove(one)
                return one
        return None

    def withdraw(self, key: Key) -> Assignment | None:
        for queue in (self.queue, self.suspected):
            for one in queue:
                if one.key == key:
                    queue.remove(one)
                    return one
        return None

    def withdraw_all(self) -> list[Assignment]:
        waiting = [*self.queue, *self.suspected]
        self.queue.clear()
        self.suspected.clear()
        return waiting

    def keys(self) -> set[Key]:
        return {one.key for one in (*self.queue, *self.suspected)}


def wanted(assignment: Assignment) -> str:
    """The name of the function that it is about."""
    return assignment.target.function  # type: ignore[union-attr]
