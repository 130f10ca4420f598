# wrong value: the mean of the ranks' means
# [answer 2]
if batches:
    total[:3] = torch.cat(batches).mean(dim=0)
    total[3] = 1
dist.all_reduce(total)
