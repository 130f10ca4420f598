# wrong value: 4 ranks, a batch of 24, a bubble of at most 1/2
# [answer 3]
for count in range(1, batch_size + 1):
    if batch_size % count == 0 and bubble(ranks, count) <= at_most:
        return batch_size // count
return None
