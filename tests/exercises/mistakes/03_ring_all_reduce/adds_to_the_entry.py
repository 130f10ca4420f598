# exception: does not support item assignment | which a tuple doesn't allow
# [answer 1]
number = (rank - step - 1) % world_size
incoming = torch.empty_like(chunks[number])
exchange(chunks[(rank - step) % world_size], incoming)
chunks[number] += incoming
