"""A module that cannot be imported."""

raise RuntimeError("the database is away")
