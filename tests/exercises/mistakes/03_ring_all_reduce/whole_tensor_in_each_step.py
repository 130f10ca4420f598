# wrong way: send one chunk in each step | bytes
# [answer 1]
# passes on what came from the left, all of it, and adds it up
if step == 0:
    travelling = torch.cat(list(chunks))
arrived = torch.empty_like(travelling)
exchange(travelling, arrived)
start = 0
for chunk in chunks:
    chunk += arrived[start : start + len(chunk)]
    start += len(chunk)
travelling = arrived
# [answer 2]
exchange(chunks[(rank + 1 - step) % world_size], chunks[(rank - step) % world_size])
