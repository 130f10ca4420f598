# right: shards gathered as objects, whose bytes are more than their numbers
# [answer 1]
parts = [None] * dist.get_world_size()
dist.all_gather_object(parts, shard.detach())
return torch.cat(parts, dim=0)[:rows]
