# wrong way: call no. 1 of new_group | is a collective of all ranks | in the same order
# [answer 3]
ranks = range(dist.get_world_size())
rows = sorted({tuple(group_ranks(rank, shape, axis)) for rank in ranks})
if dist.get_rank() == 0:
    rows.reverse()
for row in rows:
    group = dist.new_group(list(row))
    if dist.get_rank() in row:
        groups.append(group)
