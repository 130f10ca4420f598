# wrong value: after one step of SGD
# [answer 2]
first = dist.get_rank() * self.numel
self.shard.grad = whole[first : first + self.numel].clone()
