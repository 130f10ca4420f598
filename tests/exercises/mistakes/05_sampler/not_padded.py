# wrong value: rank 1's share of 13, world of 3
# [answer 3]
return epoch_order(size, seed, epoch, shuffle)[rank::world_size]
