"""Decides what happens while we wait for an answer: nudge, pause, give up, without any input or output."""
