# wrong way: all_reduce does the work
# [answer 1]
if step == 0:
    for chunk in chunks:
        dist.all_reduce(chunk)
