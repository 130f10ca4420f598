# wrong value: the group along axis 0 | no process group: new_group makes one
# [answer 3]
groups.append(group_ranks(dist.get_rank(), shape, axis))
