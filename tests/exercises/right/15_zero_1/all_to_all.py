# right: parts of the gradient by all_to_all, an awaited gather
# [answer 1]
self.shard = nn.Parameter(torch.empty(self.numel, dtype=whole.dtype))
self.shard.data.copy_(whole.view(-1, self.numel)[dist.get_rank()])
# [answer 2]
received = torch.empty_like(whole)
dist.all_to_all_single(received, whole)
self.shard.grad = received.view(dist.get_world_size(), -1).mean(0)
# [answer 3]
work = dist.all_gather_into_tensor(whole, self.shard.detach(), async_op=True)
work.wait()
rest = whole
for parameter in self.parameters:
    mine, rest = rest[: parameter.numel()], rest[parameter.numel() :]
    parameter.copy_(mine.reshape(parameter.shape))
