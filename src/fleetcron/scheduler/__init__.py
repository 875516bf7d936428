"""Due jobs become runs: plan (pure), tick (one fenced transaction), gaps, loop. And the desk, where jobs change."""
