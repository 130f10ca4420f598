# wrong value: nothing is fine enough
# [answer 3]
for count in range(1, batch_size + 1):
    if batch_size % count == 0 and bubble(ranks, count) <= at_most:
        break
return count
