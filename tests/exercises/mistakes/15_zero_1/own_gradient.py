# wrong value: after one step of SGD | never averaged
# [answer 2]
first = dist.get_rank() * self.numel
self.shard.grad = whole[first : first + self.numel].clone()
