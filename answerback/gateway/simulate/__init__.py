"""Plays scenario folders through the real code, with a virtual clock and scripted edges."""
