"""Runs a check in fresh ranks: the warm server, the supervisor, the ranks."""
