"""The workshop's grader: fresh ranks for every check, a ledger of their
collectives, and verdicts that name the learner's own line.

Nothing here imports torch at module level except what runs inside a rank
(``child``, ``ledger``, ``expect``): the command line must start at once.
"""
