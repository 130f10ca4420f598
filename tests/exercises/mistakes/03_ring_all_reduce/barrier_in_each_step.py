# wrong way: barrier makes all ranks wait for each other | its neighbors only
# [answer 2]
exchange(chunks[(rank + 1 - step) % world_size], chunks[(rank - step) % world_size])
dist.barrier()
