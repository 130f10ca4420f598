"""``workshop grade``: no learner stops or changes the grade of another.

All submissions are read before the first is run. What cannot be read gets a
sentence in its own row. Results go to files again and again during grading, and
once more at the end or at Ctrl-C.
"""
