"""The workshop's grader: fresh ranks for every check, a ledger of their
collectives, and verdicts that name the learner's own line.

The exercises on disk (``catalog``, ``checks``, ``skeleton``) and what checks say
(``expect``, ``compose``) lie here. ``engine`` runs checks in ranks, ``verdicts``
judges what the ranks did, ``jobs`` submits job scripts, ``commands`` is the
``workshop`` command, and ``plugin`` is the same for pytest.

Nothing imports torch at module level except what runs inside a rank: the command
line must start at once.
"""
