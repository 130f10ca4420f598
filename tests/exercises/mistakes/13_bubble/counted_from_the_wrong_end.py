# wrong value: held by rank 0 of 3 with 1f1b
# [answer 2]
if schedule == "gpipe":
    return micro_batches
return min(micro_batches, rank + 1)
