"""Joins the rooms: takes mail in, sends mail out, keeps the clock and opens the doors."""
