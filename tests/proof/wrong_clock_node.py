"""A node on a machine with a wrong clock (libfaketime). Its handlers are on the right time: they are the witnesses."""

import os
from collections.abc import Mapping
from typing import Any

from tests.faults import work_node


def live(given: Mapping[str, Any]) -> None:
    del os.environ["LD_PRELOAD"]  # it is loaded here already; whatever this process starts goes without it
    work_node.live(given)
