# right: a mask of the target's column, one hot
# [answer 1]
values, _ = scores.sort(dim=1, descending=True)
top = values[:, 0].contiguous()
dist.all_reduce(top, op=dist.ReduceOp.MAX)
return top
# [answer 2]
columns = torch.arange(scores.shape[1]) + first
wanted = (scores * (targets[:, None] == columns)).sum(dim=1)
dist.all_reduce(wanted)
return wanted
# [answer 3]
own = torch.nn.functional.one_hot(place.clamp(0, chances.shape[1] - 1), chances.shape[1])
return (chances - own * is_local[:, None]) * gradient[:, None], None, None
