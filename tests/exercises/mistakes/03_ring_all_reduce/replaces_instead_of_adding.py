# wrong value: chunk r + 1 of rank r after phase 1
# [answer 1]
exchange(chunks[(rank - step) % world_size], chunks[(rank - step - 1) % world_size])
