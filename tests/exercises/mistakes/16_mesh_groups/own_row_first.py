# wrong way: call no. 1 of new_group | is a collective of all ranks | in the same order
# [answer 3]
ranks = range(dist.get_world_size())
rows = {tuple(group_ranks(rank, shape, axis)) for rank in ranks}
own = tuple(group_ranks(dist.get_rank(), shape, axis))
for row in sorted(rows, key=lambda row: row != own):
    group = dist.new_group(list(row))
    if dist.get_rank() in row:
        groups.append(group)
