"""Speaks to the world: turns mail that arrives into values and values into mail that leaves."""
