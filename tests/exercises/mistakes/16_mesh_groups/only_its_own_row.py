# wrong way: call no. 1 of new_group | is a collective of all ranks | in the same order
# [answer 3]
groups.append(dist.new_group(group_ranks(dist.get_rank(), shape, axis)))
