# wrong value: the sum of the shares | only one rank holds the result
# [answer 1]
total = share.clone()
dist.reduce(total, dst=0)
return total
