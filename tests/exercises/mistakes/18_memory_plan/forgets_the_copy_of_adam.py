# wrong value: on 8 rank(s), stage 0
# [answer 1]
shard = -(-parameters // ranks)
kept = [shard if stage >= first else parameters for first in (3, 2, 1)]
return 2 * kept[0] + 2 * kept[1] + 8 * kept[2]
