# right: all layers in one reduce-scatter, the squares gathered
# [answer 1]
world_size = dist.get_world_size()
rows = torch.cat([gradient.view(world_size, -1) for gradient in gradients], dim=1)
mine = rows.new_empty(rows.shape[1])
dist.reduce_scatter_tensor(mine, rows.flatten() / world_size)
shards = list(mine.split([len(gradient) // world_size for gradient in gradients]))
# [answer 2]
own = torch.cat(shards).square().sum().reshape(1)
everybody = own.new_empty(dist.get_world_size())
dist.all_gather_into_tensor(everybody, own)
norm = everybody.sum().sqrt()
shards = [shard * min(1.0, max_norm / (float(norm) + 1e-6)) for shard in shards]
