"""A linter for job scripts and launch lines; it reads them and never runs them.

It needs nothing but Python's standard library and workshop/errors.py, so a site can
copy both and put ``python -m workshop.lint JOB`` in front of its queue.
"""
