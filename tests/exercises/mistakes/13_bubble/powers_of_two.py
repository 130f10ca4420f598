# wrong value: 4 ranks, a batch of 24 | is 8, expected 6
# [answer 3]
count = 1
while count <= batch_size:
    if batch_size % count == 0 and bubble(ranks, count) <= at_most:
        return count
    count *= 2
return None
