"""What attempts print, on its way to the store."""

import asyncio

import pytest

from fleetcron.executors.reports import LogChunk, Progress
from fleetcron.worker.output import Output
from tests.worker.crew import Crew
from tests.worker.plays import played


def test_whoever_prints_on_and_on_keeps_no_end_from_being_written(
    sqlite_memory_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before an end is written, what came until then is. A hundred commands that print a line now and then print the
    next one before the last one is stored, and that was waited for, too."""
    monkeypatch.setattr("fleetcron.worker.output._EVERY_S", 0.02)

    async def scenario(made: Crew) -> None:
        output = Output(made.store, "w1")
        store = made.store.output.append

        async def chatting(node_id: str, chunks: list[LogChunk], progress: list[Progress]) -> object:
            written = await store(node_id, chunks, progress)
            output.put(LogChunk(1, 1, chunks[-1].seq + 1, "on\n", False))
            output.put(Progress(1, 1, 0.5, "and on"))
            return written

        made.store.output.append = chatting  # type: ignore[assignment, method-assign]
        for seq in range(600):
            output.put(LogChunk(1, 1, seq, "first\n", False))
        await asyncio.wait_for(output.flush(), 5)
        writing = asyncio.create_task(output.run())  # the rest is not forgotten
        try:
            async with asyncio.timeout(5):
                while output._chunks[-1].seq < 610:
                    await asyncio.sleep(0.01)
        finally:
            writing.cancel()

    played(sqlite_memory_url, scenario)
