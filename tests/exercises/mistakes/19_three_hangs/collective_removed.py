# wrong value: the mean loss | rank 0 | nothing was communicated
# [answer 1]
return float(loss) if dist.get_rank() == 0 else None
