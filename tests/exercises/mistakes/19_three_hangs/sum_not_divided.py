# wrong value: the mean loss | times | never divided by the world size
# [answer 1]
total = loss.clone()
dist.all_reduce(total)
return float(total) if dist.get_rank() == 0 else None
