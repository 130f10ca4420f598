# A line of blanks isn't an empty line, and PBS writes neither.
# [answer 1]
import collections

counts = collections.defaultdict(int)
for host in filter(None, text.split("\n")):
    counts[host] += 1
try:
    (lines,) = set(counts.values())
except ValueError:
    raise ValueError(f"not the same number for each host: {dict(counts)}") from None
return [*counts], lines
# [answer 2]
import re

table = {re.match(r"[^.]*", h).group(): i for i, h in reversed([*enumerate(hosts)])}
try:
    return table[hostname.split(".", 1)[0]]
except KeyError:
    raise ValueError(f"{hostname} isn't in {hosts}") from None
