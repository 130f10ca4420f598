# wrong value: self.shard
# [answer 1]
self.shard = nn.Parameter(whole[: self.numel].clone())
