# wrong value: the tensor after phase 2 | stored elsewhere
# [answer 2]
incoming = chunks[(rank - step) % world_size].clone()
exchange(chunks[(rank + 1 - step) % world_size], incoming)
