# wrong value: rank 1's share of 13, world of 3, epoch 0
# [answer 3]
padded = pad(epoch_order(size, seed + rank, epoch, shuffle), world_size)
return padded[rank::world_size]
