# wrong value: the number of groups
# [answer 3]
ranks = range(dist.get_world_size())
for row in sorted({tuple(group_ranks(rank, shape, axis)) for rank in ranks}):
    groups.append(dist.new_group(list(row)))
