"""WHAT: jobs, runs, their states and rules. Pure: no clock, no store."""
