# hang: all_reduce | rank 1 | only some ranks reach
# [answer 2]
for batch in batches:
    total[:3] += batch.sum(dim=0)
    total[3] += len(batch)
if batches:
    dist.all_reduce(total)
