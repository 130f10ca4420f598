"""The learner's commands: list, check, watch, hint, next, reset, diff."""
