"""Classic mistakes: one entry each, in the table of what gives it away.

To add one, write its entry: a key, what to tell the learner, the page that explains
it, and ``seen``, a function that recognizes it. The entry goes into ``values``,
``exceptions``, ``hangs`` or ``calls``, before whatever would also be true of it, and
an example of it into ``tests/grader/test_suspicions.py``.
"""
