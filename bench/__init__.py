"""Speed, next to peers in one run. `make bench`, or `python -m bench [NAME ...] [--json] [--quick]`.

Goals of speed live here and never in tests: a test that looks at a clock fails on a busy machine. A missed goal is
printed, and the exit code stays 0: this is a measurement.
"""
