# exception: rank 4 is out of range | dist.new_group(ranks)
# [answer 3]
for first in range(dist.get_world_size()):
    ranks = group_ranks(first, shape, axis)
    if first == ranks[0]:
        ranks = [rank + 1 for rank in ranks]
        group = dist.new_group(ranks)
        if dist.get_rank() in ranks:
            groups.append(group)
