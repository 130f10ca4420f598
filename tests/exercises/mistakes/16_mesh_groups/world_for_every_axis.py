# wrong value: the ranks of the group, axis 0
# [answer 3]
mine.append(dist.new_group(list(range(dist.get_world_size()))))
