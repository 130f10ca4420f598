# wrong value: held by rank 0 of 4 with 1f1b, m = 2
# [answer 2]
if schedule == "gpipe":
    return micro_batches
return ranks - rank
