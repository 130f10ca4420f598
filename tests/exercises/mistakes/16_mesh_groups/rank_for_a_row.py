# exception: 'int' object is not iterable | dist.new_group(rank)
# [answer 3]
for rank in range(dist.get_world_size()):
    group = dist.new_group(rank)
    if rank == dist.get_rank():
        groups.append(group)
