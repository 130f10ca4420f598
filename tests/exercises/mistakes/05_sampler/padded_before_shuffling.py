# wrong value: rank 0's share of 13, world of 3
# [answer 3]
total = -(-size // world_size) * world_size
return [i % size for i in epoch_order(total, seed, epoch, shuffle)][rank::world_size]
