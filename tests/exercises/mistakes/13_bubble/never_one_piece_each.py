# wrong value: 8 ranks, a batch of 64 | is None, expected 64
# [answer 3]
for count in range(1, batch_size):
    if batch_size % count == 0 and bubble(ranks, count) <= at_most:
        return count
return None
