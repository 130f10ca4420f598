# wrong value: int64 | name different dtypes
# [answer 1]
mine = chunks[(rank - step - 1) % world_size]
incoming = torch.empty(mine.shape, dtype=torch.float64)
exchange(chunks[(rank - step) % world_size], incoming)
mine += incoming.to(mine.dtype)
