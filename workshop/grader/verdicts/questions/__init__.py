"""The questions behind the verdicts; ``diagnosis.py`` has their order.

A question is a function that gets the ``Evidence`` and
returns a ``Finding``, or None if all is well. It may
rely on every question before it having been answered well, and on nothing else.
"""
