# wrong value: 4 ranks, a batch of 30
# [answer 3]
for count in range(1, batch_size + 1):
    if bubble(ranks, count) <= at_most:
        return count
return None
