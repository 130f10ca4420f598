# wrong way: send one chunk in each step | messages
# [answer 2]
exchange(chunks[(rank + 1 - step) % world_size], chunks[(rank - step) % world_size])
if step == world_size - 2:
    exchange(chunks[(rank + 1) % world_size], chunks[rank])
