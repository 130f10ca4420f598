# wrong way: an all_reduce | half as much
# [answer 2]
whole /= dist.get_world_size()
dist.all_reduce(whole)
first = dist.get_rank() * self.numel
self.shard.grad = whole[first : first + self.numel].clone()
