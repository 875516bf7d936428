"""The pytest plugin, which pytest finds by itself: the fixture `fleetcron_world`."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fleetcron.testing.worlds import World


@pytest.fixture
def fleetcron_world() -> "Iterator[Callable[..., World]]":
    """`w = fleetcron_world(app, start="2027-03-13")`: as `fleetcron.testing.world`, and closed when the test ends."""
    from fleetcron.testing.worlds import world  # the rest is imported only by tests that use it

    with ExitStack() as opened:

        def make(*given: Any, **named: Any) -> "World":
            return opened.enter_context(world(*given, **named))

        yield make
