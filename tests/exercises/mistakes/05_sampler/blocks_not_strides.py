# wrong value: rank 0's share of 13, world of 3, not shuffled
# [answer 3]
padded = pad(epoch_order(size, seed, epoch, shuffle), world_size)
length = len(padded) // world_size
return padded[rank * length : (rank + 1) * length]
