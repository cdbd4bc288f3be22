"""Decides whose reply a message is, from its ids and tokens, without any input or output."""
