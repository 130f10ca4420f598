"""The questions behind the verdicts; :mod:`grader.verdicts.diagnosis` has their order.

A question is a function that gets the :class:`~grader.verdicts.evidence.Evidence` and
returns a :class:`~grader.verdicts.evidence.Finding`, or None if all is well. It may
rely on every question before it having been answered well, and on nothing else.
"""
