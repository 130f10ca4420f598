# wrong value: the share of this rank, afterwards
# [answer 1]
dist.all_reduce(share)
return share.clone()
