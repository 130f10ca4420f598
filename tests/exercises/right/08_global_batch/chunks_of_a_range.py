# right: lengths of slices, an einsum, the rate by lerp
# [answer 1]
if world_size > global_batch:
    raise ValueError(f"{world_size} ranks need a sample each, there are {global_batch}")
return [len(range(rank, global_batch, world_size)) for rank in range(world_size)]
# [answer 2]
return torch.einsum("i->", losses).mul(world_size).div(global_batch)
# [answer 3]
end = rate / tuned_batch * global_batch
done = 1.0 if step >= warmup else step / warmup
return (1 - done) * rate + done * end
