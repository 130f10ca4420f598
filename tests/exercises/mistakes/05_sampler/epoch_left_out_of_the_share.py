# wrong value: epoch 1
# [answer 3]
padded = pad(epoch_order(size, seed, 0, shuffle), world_size)
return padded[rank::world_size]
