# wrong way: never waited for the Work of i | keep the Work
# [answer 1]
own = chunks[(rank - step - 1) % world_size]
incoming = torch.zeros_like(own)
sending = dist.isend(chunks[(rank - step) % world_size].clone(), (rank + 1) % world_size)
receiving = dist.irecv(incoming, (rank - 1) % world_size)
own += incoming
