# wrong value: share of 13
# [answer 3]
padded = pad(epoch_order(size, seed, epoch, shuffle), world_size)
return padded[world_size - 1 - rank :: world_size]
