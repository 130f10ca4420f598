# hang: deadlock, no rank can continue
# [answer 3]
mine.append(dist.new_group(group_ranks(dist.get_rank(), shape, axis)))
