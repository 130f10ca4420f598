# wrong value: after one step of SGD
# [answer 1]
self.shard = nn.Parameter(whole[: self.numel].clone())
