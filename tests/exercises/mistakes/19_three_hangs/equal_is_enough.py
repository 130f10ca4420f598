# wrong value: where the first mean is the limit and isn't below it
# [answer 3]
mean = loss.clone()
dist.all_reduce(mean)
if float(mean) / dist.get_world_size() <= limit:
    return step
