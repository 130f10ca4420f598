# wrong value: 4 ranks, a batch of 24, a bubble of at most 1/2
# [answer 3]
for count in range(batch_size, 0, -1):
    if batch_size % count == 0 and bubble(ranks, count) <= at_most:
        return count
return None
