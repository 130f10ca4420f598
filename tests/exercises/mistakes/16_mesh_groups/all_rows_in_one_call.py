# exception: raised TypeError | dist.new_group(rows)
# [answer 3]
rows = [group_ranks(rank, shape, axis) for rank in range(dist.get_world_size())]
groups.append(dist.new_group(rows))
