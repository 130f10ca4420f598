"""``workshop capstone``: points for what the evidence of a run shows."""
