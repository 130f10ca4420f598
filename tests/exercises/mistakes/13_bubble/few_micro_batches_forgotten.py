# wrong value: held by rank 0 of 2 with 1f1b, m = 1
# [answer 2]
if schedule == "gpipe":
    return micro_batches
return ranks - rank
