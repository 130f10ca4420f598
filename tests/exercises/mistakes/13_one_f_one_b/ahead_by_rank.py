# wrong value: rank 2 of 3 | at a time
# [answer 1]
ahead = min(rank, micro_batches)
