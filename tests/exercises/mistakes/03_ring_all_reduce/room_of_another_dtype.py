# crash: recv(float32[2] | different dtypes
# [answer 1]
mine = chunks[(rank - step - 1) % world_size]
incoming = torch.empty(mine.shape)
exchange(chunks[(rank - step) % world_size], incoming)
mine += incoming
