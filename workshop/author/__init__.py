"""For those who write exercises: the known answers, `workshop dev new` and `check`."""
