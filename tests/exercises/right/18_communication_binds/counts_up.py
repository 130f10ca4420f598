# right: one rank is a case of its own; a loop that counts, and how late it is
# [answer 1]
if ranks == 1:
    return 0.0
return 2 * (ranks - 1) * (alpha + size / ranks * beta)
# [answer 2]
forward = batch * per_sequence / ranks / 3
return 2 * forward
# [answer 3]
ranks = 1
while ranks <= batch:
    backward = backward_seconds(ranks, batch, per_sequence)
    late = all_reduce_seconds(ranks, size, alpha, beta) - backward
    if batch % ranks == 0 and late > 0:
        return ranks
    ranks += 1
