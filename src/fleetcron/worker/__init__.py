"""Runs become attempts: claim, hold until the instant, execute, write the end. See loop.py for the walk."""
