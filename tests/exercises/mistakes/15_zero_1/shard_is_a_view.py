# wrong way: self.shard is a view of a tensor of | copy its
# [answer 1]
first = dist.get_rank() * self.numel
self.shard = nn.Parameter(whole[first : first + self.numel])
