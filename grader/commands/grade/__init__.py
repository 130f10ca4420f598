"""``workshop grade``: the folders of many learners."""
