# exception: ranks 0, 1 and 2 raised RuntimeError: ProcessGroupGloo::allgather: invalid tensor type
# [answer 1]
whole = torch.empty(
    dist.get_world_size() * len(shard), shard.shape[1], dtype=torch.float64
)
dist.all_gather_into_tensor(whole, shard)
return whole[:rows]
