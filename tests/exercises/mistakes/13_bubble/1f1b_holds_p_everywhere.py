# wrong value: held by rank 1 of 2 with 1f1b
# [answer 2]
if schedule == "gpipe":
    return micro_batches
return min(micro_batches, ranks)
