# wrong value: the sum of the shares
# [answer 1]
total = share.clone()
dist.reduce(total, dst=0)
return total
