# hang: deadlock | waits in recv | every rank receives first
# [answer 1]
own = chunks[(rank - step - 1) % world_size]
incoming = torch.empty_like(own)
dist.recv(incoming, (rank - 1) % world_size)
dist.send(chunks[(rank - step) % world_size], (rank + 1) % world_size)
own += incoming
