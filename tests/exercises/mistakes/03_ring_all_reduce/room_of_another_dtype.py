# crash: recv(float32[2] | different dtypes
# [answer 1]
own = chunks[(rank - step - 1) % world_size]
incoming = torch.empty(own.shape)
exchange(chunks[(rank - step) % world_size], incoming)
own += incoming
