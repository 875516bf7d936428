"""The command `fleetcron`. Commands live in one file each and are imported when they are called."""

from fleetcron.cli.main import main

__all__ = ["main"]
