# wrong value: rank 1 of 3 | at a time
# [answer 1]
ahead = min(ranks - 1, micro_batches)
