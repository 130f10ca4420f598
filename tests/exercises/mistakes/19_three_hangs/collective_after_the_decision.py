# hang: rank | some ranks leave one out
# [answer 3]
if float(loss) < limit:
    mean = loss.clone()
    dist.all_reduce(mean)
    if float(mean) / dist.get_world_size() < limit:
        return step
