# wrong value: stage 1
# [answer 1]
shard = -(-parameters // ranks)
kept = [shard if stage >= first else parameters for first in (1, 2, 3)]
return 2 * kept[0] + 2 * kept[1] + 12 * kept[2]
