# wrong value: rank 1 of 2 | at a time
# [answer 1]
ahead = min(ranks - 1, micro_batches)
