"""Submits job scripts: to the practice cluster, to paper, or to a real site."""
