# wrong value: rank 0's share of 13, world of 3, not shuffled
# [answer 3]
return pad(epoch_order(size, seed, epoch, True), world_size)[rank::world_size]
