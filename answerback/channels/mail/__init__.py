"""Reads and writes mail, and carries it over SMTP."""
