"""``workshop diagnose``: which rank of a failed run failed first, and why."""
