# wrong value: int64 | name different dtypes
# [answer 1]
own = chunks[(rank - step - 1) % world_size]
incoming = torch.empty(own.shape, dtype=torch.float64)
exchange(chunks[(rank - step) % world_size], incoming)
own += incoming.to(own.dtype)
