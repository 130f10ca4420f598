# right: shares from a difference of floors, the loss by dot and by two steps
# [answer 1]
if not 0 < world_size <= global_batch:
    raise ValueError(f"global batch {global_batch}, world size {world_size}")
ends = [-(-global_batch * rank // world_size) for rank in range(world_size + 1)]
return sorted((b - a for a, b in zip(ends, ends[1:])), reverse=True)
# [answer 2]
weights = torch.full_like(losses, world_size / global_batch)
return torch.dot(losses, weights)
# [answer 3]
factor = global_batch / tuned_batch
if warmup == 0:
    return rate * factor
part = min(step, warmup) / warmup
return rate * (1.0 + part * (factor - 1.0))
