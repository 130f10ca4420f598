# wrong value: rank 1's share of 13, world of 3
# [answer 3]
padded = pad(epoch_order(size, seed, epoch, shuffle), world_size)
return padded[::world_size]
