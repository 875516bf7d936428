"""How many of what, in words."""


def numbered(count: int, noun: str) -> str:
    """1 job, 2 jobs, 1,000 jobs."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
