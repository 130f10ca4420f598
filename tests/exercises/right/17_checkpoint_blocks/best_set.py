# right: tries every set of blocks, the small ones first
# [answer 1]
from itertools import combinations

every = range(len(saved))
for count in range(len(saved) + 1):
    for some in combinations(every, count):
        if sum(inputs[n] if n in some else saved[n] for n in every) <= limit:
            return set(some)
raise ValueError(f"{limit} bytes are not enough")
