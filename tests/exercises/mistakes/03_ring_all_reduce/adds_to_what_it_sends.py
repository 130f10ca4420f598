# wrong value: chunk r + 1 of rank r after phase 1 | stored elsewhere
# [answer 1]
outgoing = chunks[(rank - step) % world_size]
incoming = torch.empty_like(chunks[(rank - step - 1) % world_size])
exchange(outgoing, incoming)
outgoing[: len(incoming)] += incoming[: len(outgoing)]
