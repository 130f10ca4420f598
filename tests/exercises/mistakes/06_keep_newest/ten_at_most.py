# wrong value: returned None, but all ranks have epoch 2
# [answer 2]
padded = torch.full((10,), -1)
padded[: len(own)] = torch.tensor(own[:10])
everyone = [torch.empty_like(padded) for _ in range(dist.get_world_size())]
dist.all_gather(everyone, padded)
common = set(own).intersection(*[t.tolist() for t in everyone]) - {-1}
return max(common, default=None)
