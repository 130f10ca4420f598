# right: the mean of the share, weighted by its size; min() instead of if
# [answer 1]
if global_batch < world_size:
    raise ValueError(f"{world_size} ranks, {global_batch} samples")
sizes = [0] * world_size
for sample in range(global_batch):
    sizes[sample % world_size] += 1
return sizes
# [answer 2]
return losses.mean() * (len(losses) * world_size / global_batch)
# [answer 3]
done = min(1.0, step / warmup) if warmup else 1.0
return rate * (1 - done + done * global_batch / tuned_batch)
