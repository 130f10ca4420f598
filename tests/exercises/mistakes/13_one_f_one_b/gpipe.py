# wrong value: rank 0 of 3 with 4 micro-batches holds 4 at a time, expected at most 3
# [answer 1]
ahead = micro_batches
