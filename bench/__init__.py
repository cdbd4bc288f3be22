"""Measures, each a ratio within one run; `just bench` runs them all."""
