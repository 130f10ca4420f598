# wrong value: but communication never binds here
# [answer 3]
ranks = 1
while ranks <= batch:
    sent = all_reduce_seconds(ranks, size, alpha, beta)
    if batch % ranks == 0 and sent > backward_seconds(ranks, batch, per_sequence):
        return ranks
    ranks += 1
return batch
