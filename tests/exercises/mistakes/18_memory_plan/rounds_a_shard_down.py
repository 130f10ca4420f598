# wrong value: state of 6,700,000,000 parameters on 3 rank(s), stage 1
# [answer 1]
shard = parameters // ranks
kept = [shard if stage >= first else parameters for first in (3, 2, 1)]
return 2 * kept[0] + 2 * kept[1] + 12 * kept[2]
