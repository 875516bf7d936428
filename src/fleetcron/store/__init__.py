"""MEMORY: the only room with SQL."""
