"""Worlds of their own: the real rooms of a fleet on virtual time, with a simulated network, machine and database."""
