# wrong value: a batch of 49 | is 49, expected 7
# [answer 3]
numbers, low = [], 1
while low * low < batch:
    if batch % low == 0:
        numbers += [low, batch // low]
    low += 1
for ranks in sorted(numbers):
    needed = all_reduce_seconds(ranks, size, alpha, beta)
    if needed > backward_seconds(ranks, batch, per_sequence):
        return ranks
return None
