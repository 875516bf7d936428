"""DECISIONS: pure functions of definitions, facts and now."""
