# wrong way: read the tensor of irecv | before waiting for it | chunk r + 1 of rank r after phase 1 | call its `wait()` before you use
# [answer 1]
own = chunks[(rank - step - 1) % world_size]
incoming = torch.zeros_like(own)
sending = dist.isend(chunks[(rank - step) % world_size].clone(), (rank + 1) % world_size)
receiving = dist.irecv(incoming, (rank - 1) % world_size)
own += incoming
receiving.wait()
sending.wait()
