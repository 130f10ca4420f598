"""The workshop: its commands, its grader and its practice cluster."""
