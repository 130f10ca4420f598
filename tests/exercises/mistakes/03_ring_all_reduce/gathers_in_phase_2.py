# wrong way: does the work
# [answer 2]
if step == 0:
    for number, chunk in enumerate(chunks):
        dist.broadcast(chunk, src=(number - 1) % world_size)
