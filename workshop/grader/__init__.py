"""Runs a learner's code in fresh ranks, and says what is wrong with it, and where.

``engine`` runs a check in ranks, ``ledger`` records their collectives, ``verdicts``
judges what the ranks did. Checks call ``expect``, ``by_hand``, ``compose``, ``kills``,
``loaders`` and ``races``.

Nothing imports torch at module level except what runs inside a rank: the command
line must start at once.
"""
