# wrong way: more than 12 numbers went through all_gather | each call needs one number for each place
# [answer 1]
size = torch.tensor(scores.shape[1])
dist.all_reduce(size, op=dist.ReduceOp.MAX)
padded = torch.full((len(scores), int(size)), -torch.inf, dtype=scores.dtype)
padded[:, : scores.shape[1]] = scores
slots = [torch.empty_like(padded) for _ in range(dist.get_world_size())]
dist.all_gather(slots, padded)
return torch.cat(slots, 1).max(dim=1).values
