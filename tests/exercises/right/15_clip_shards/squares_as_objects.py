# right: the squares gathered as objects
# [answer 2]
squares = [0.0] * dist.get_world_size()
dist.all_gather_object(squares, float(sum((shard * shard).sum() for shard in shards)))
norm = torch.tensor(sum(squares), dtype=shards[0].dtype).sqrt()
shards = [shard * min(1.0, max_norm / (float(norm) + 1e-6)) for shard in shards]
