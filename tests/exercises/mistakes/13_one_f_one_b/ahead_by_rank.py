# wrong value: rank 1 of 2 | at a time
# [answer 1]
ahead = min(rank, micro_batches)
