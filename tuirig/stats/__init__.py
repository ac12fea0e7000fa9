"""Statistics: intervals, ratios, verdicts. Pure functions."""
