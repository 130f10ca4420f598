# wrong value: slots of 3 ranks, 4 micro-batches | expected 12
# [answer 1]
ahead = min(1, ranks - 1 - rank, micro_batches)
