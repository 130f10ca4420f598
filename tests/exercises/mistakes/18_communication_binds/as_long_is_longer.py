# wrong value: a batch of 4 | is 2, expected 4
# [answer 3]
for ranks in range(1, batch + 1):
    sent = all_reduce_seconds(ranks, size, alpha, beta)
    if batch % ranks == 0 and sent >= backward_seconds(ranks, batch, per_sequence):
        return ranks
return None
