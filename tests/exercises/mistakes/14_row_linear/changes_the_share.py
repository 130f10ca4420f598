# wrong value: the share of this rank, afterwards
# [answer 1]
total = share.contiguous()
dist.all_reduce(total)
return total
