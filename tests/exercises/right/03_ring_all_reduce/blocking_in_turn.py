# right: blocking calls; rank 0 receives first and so breaks the circle
# [answer 1]
outgoing = chunks[(rank - step) % world_size].clone()
own = chunks[(rank - step - 1) % world_size]
incoming = torch.empty_like(own)
if rank == 0:
    dist.recv(incoming, world_size - 1)
    dist.send(outgoing, 1)
else:
    dist.send(outgoing, (rank + 1) % world_size)
    dist.recv(incoming, rank - 1)
own.add_(incoming)
# [answer 2]
room = torch.empty_like(chunks[(rank - step) % world_size])
exchange(chunks[(rank + 1 - step) % world_size].clone(), room)
chunks[(rank - step) % world_size].copy_(room)
