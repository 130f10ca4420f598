# wrong value: no member
# [answer 3]
ranks = range(dist.get_world_size())
for row in sorted({tuple(group_ranks(rank, shape, axis)) for rank in ranks}):
    group = dist.new_group(list(row))
groups.append(group)
