"""The ``workshop`` command, what it keeps, and how it looks."""
