# wrong value: reduce gives its sum to one rank only
# [answer 2]
whole /= dist.get_world_size()
dist.reduce(whole, dst=0)
first = dist.get_rank() * self.numel
self.shard.grad = whole[first : first + self.numel].clone()
