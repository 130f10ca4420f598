# wrong value: slots of
# [answer 1]
ahead = min(ranks - 1 - rank, micro_batches, 5)
