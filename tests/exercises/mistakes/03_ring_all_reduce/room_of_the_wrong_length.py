# crash: rank | different dtypes or numbers of elements
# [answer 1]
# the chunk that arrives can be longer than the one that leaves
outgoing = chunks[(rank - step) % world_size]
incoming = torch.empty_like(outgoing)
exchange(outgoing, incoming)
chunks[(rank - step - 1) % world_size].add_(incoming)
