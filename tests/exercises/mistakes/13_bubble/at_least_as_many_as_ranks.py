# wrong value: a batch of 7, a bubble of at most 2
# [answer 3]
for count in range(ranks, batch_size + 1):
    if batch_size % count == 0 and bubble(ranks, count) <= at_most:
        return count
return None
