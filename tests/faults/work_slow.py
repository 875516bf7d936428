"""A module of handlers whose import takes its time."""

import time

from tests.faults.work_handlers import works

__all__ = ["works"]
time.sleep(4)  # longer than the lease in the tests: that is what they are about
