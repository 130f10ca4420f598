# wrong value: each keep a group of another call of new_group
# [answer 3]
for rank in range(dist.get_world_size()):
    group = dist.new_group(group_ranks(rank, shape, axis))
    if rank == dist.get_rank():
        groups.append(group)
