# exception: mesh_dim_names
# [answer 1]
mesh = init_device_mesh("cpu", (nodes, per_node))
for block in model.blocks:
    fully_shard(block, mesh=mesh)
fully_shard(model, mesh=mesh)
