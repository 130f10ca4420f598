# wrong value: at a time, expected at most
# [answer 1]
ahead = min(ranks - rank, micro_batches)
