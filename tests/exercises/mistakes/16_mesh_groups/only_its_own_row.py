# hang: new_group | is a collective of all ranks
# [answer 3]
mine.append(dist.new_group(group_ranks(dist.get_rank(), shape, axis)))
