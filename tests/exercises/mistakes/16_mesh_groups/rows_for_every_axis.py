# wrong value: the ranks of the group, axis 0, (2, 2) | the group along axis 1
# [answer 3]
for first in range(0, dist.get_world_size(), shape[axis]):
    ranks = list(range(first, first + shape[axis]))
    group = dist.new_group(ranks)
    if dist.get_rank() in ranks:
        groups.append(group)
