"""The one error of this package."""


class ClusterError(Exception):
    """One sentence: what does not work, and the cure."""
