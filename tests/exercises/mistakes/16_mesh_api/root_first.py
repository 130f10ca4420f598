# exception: overlapping meshes | from the inside out
# [answer 1]
mesh = init_device_mesh("cpu", (nodes, per_node), mesh_dim_names=("nodes", "ranks"))
fully_shard(model, mesh=mesh)
for block in model.blocks:
    fully_shard(block, mesh=mesh)
