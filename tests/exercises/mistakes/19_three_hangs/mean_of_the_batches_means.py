# wrong value: the mean of the batches' means
# [answer 2]
for batch in batches:
    total[:3] += batch.mean(dim=0)
    total[3] += 1
dist.all_reduce(total)
return total[:3] / total[3]
