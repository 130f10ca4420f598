# wrong value: a batch of
# [answer 3]
ranks = 1
while ranks <= batch:
    sent = all_reduce_seconds(ranks, size, alpha, beta)
    if sent > backward_seconds(ranks, batch, per_sequence):
        return ranks
    ranks += 1
return None
