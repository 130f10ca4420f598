# wrong value: at a time
# [answer 1]
ahead = ranks - 1 - rank if micro_batches >= ranks else micro_batches
