"""Many jobs and calendars at once, for good or as a rehearsal: what became of each, and of the ticks."""
