"""A node that dies with whoever started it, also by kill -9: `python -m fleetcron.torture.child PARENT`.

What the kernel is asked for here outlives the exec.
"""

import os
import signal
import sys

from fleetcron.executors.linux import die_with

if __name__ == "__main__":
    die_with(int(sys.argv[1]), signal.SIGKILL)
    os.execv(sys.executable, [sys.executable, "-P", "-m", "fleetcron", "serve"])
