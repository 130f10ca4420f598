# wrong value: need not follow each other | the hosts
# [answer 1]
from itertools import groupby

groups = [(host, len(list(lines))) for host, lines in groupby(text.split())]
if not groups or len({count for _, count in groups}) > 1:
    raise ValueError(f"unequal: {groups}")
return [host for host, _ in groups], groups[0][1]
