# wrong value: a bubble of at most 1/10
# [answer 3]
for count in range(1, batch_size + 1):
    if batch_size % count == 0 and (ranks - 1) / count <= at_most:
        return count
return None
