# wrong value: holds 3 at a time
# [answer 1]
ahead = micro_batches
