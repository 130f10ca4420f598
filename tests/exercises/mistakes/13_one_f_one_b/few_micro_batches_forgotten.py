# wrong value: forwards of rank 0 of 4 with 2 micro-batches
# [answer 1]
ahead = ranks - 1 - rank
