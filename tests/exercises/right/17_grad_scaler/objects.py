# right: flags as objects; the smallest
# [answer 1]
for number in range(len(gradients)):
    gradients[number].mul_(1 / self.scale)
flags = torch.ones(dist.get_world_size(), dtype=torch.uint8)
own = torch.tensor([all(bool(g.isfinite().all()) for g in gradients)], dtype=torch.uint8)
dist.all_gather_into_tensor(flags, own)
finite = bool(flags.min())
