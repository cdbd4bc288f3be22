"""Remembers everything, and is the only room that speaks SQL."""
