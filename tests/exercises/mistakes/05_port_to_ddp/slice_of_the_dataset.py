# exception: one image for a number, none for slice | return DataLoader(dataset[
# [answer 2]
rank, world_size = dist.get_rank(), dist.get_world_size()
return DataLoader(dataset[rank::world_size], batch_size, shuffle=True)
