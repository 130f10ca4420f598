# right: isend and irecv by hand, the sum built in the arriving memory
# [answer 1]
own = chunks[(rank - step - 1) % world_size]
incoming = torch.empty_like(own)
receiving = dist.irecv(incoming, (rank - 1) % world_size)
sending = dist.isend(chunks[(rank - step) % world_size], (rank + 1) % world_size)
receiving.wait()
sending.wait()
own.copy_(incoming.add_(own))
# [answer 2]
ops = [
    dist.P2POp(dist.isend, chunks[(rank + 1 - step) % world_size], (rank + 1) % world_size),
    dist.P2POp(dist.irecv, chunks[(rank - step) % world_size], (rank - 1) % world_size),
]
for work in dist.batch_isend_irecv(ops):
    work.wait()
