"""Lets a software agent write to a person and get that person's answer back."""

__version__ = "0.1.0"
