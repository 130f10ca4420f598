# wrong value: at a time | are enough
# [answer 1]
ahead = min(ranks - rank, micro_batches)
