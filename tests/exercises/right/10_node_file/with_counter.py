# right: with Counter, whose keys stay in the order of their first appearance
# [answer 1]
from collections import Counter

counts = Counter(line.strip() for line in text.splitlines() if line.strip())
numbers = sorted(set(counts.values()))
if len(numbers) != 1:
    raise ValueError(f"hosts need equally many lines, not {numbers or 'none'}")
return [*counts], numbers[0]
# [answer 2]
for rank, host in enumerate(hosts):
    if host.partition(".")[0] == hostname.partition(".")[0]:
        return rank
raise ValueError(f"no {hostname} among {hosts}")
