# wrong way: an all_gather
# [answer 2]
slots = [torch.empty_like(whole) for _ in range(dist.get_world_size())]
dist.all_gather(slots, whole)
first = dist.get_rank() * self.numel
self.shard.grad = torch.stack(slots).mean(0)[first : first + self.numel].clone()
