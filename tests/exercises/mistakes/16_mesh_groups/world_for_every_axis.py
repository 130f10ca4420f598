# wrong value: the ranks of the group, axis 0
# [answer 3]
groups.append(dist.new_group(list(range(dist.get_world_size()))))
