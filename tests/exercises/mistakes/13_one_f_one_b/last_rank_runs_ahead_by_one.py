# wrong value: rank 2 of 3 with 4 micro-batches holds 2 at a time, expected at most 1
# [answer 1]
ahead = min(max(ranks - 1 - rank, 1), micro_batches)
