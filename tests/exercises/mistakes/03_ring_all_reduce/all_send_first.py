# hang: deadlock | waits in send | every rank sends first
# [answer 1]
own = chunks[(rank - step - 1) % world_size]
incoming = torch.empty_like(own)
dist.send(chunks[(rank - step) % world_size], (rank + 1) % world_size)
dist.recv(incoming, (rank - 1) % world_size)
own += incoming
