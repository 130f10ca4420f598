# wrong way: never waited for the Work of all_reduce | keep the Work
# [answer 1]
total = share.clone()
dist.all_reduce(total, async_op=True)
return total
