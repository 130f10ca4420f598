# right: gathers the maxima, compares each column with the target
# [answer 1]
own = scores.amax(dim=1)
slots = [torch.empty_like(own) for _ in range(dist.get_world_size())]
dist.all_gather(slots, own)
return torch.stack(slots).amax(dim=0)
# [answer 2]
wanted = torch.zeros(len(targets), dtype=scores.dtype)
wanted[is_local] = scores[is_local, place[is_local]]
dist.all_reduce(wanted)
return wanted
# [answer 3]
own = ctx.first + torch.arange(chances.shape[1])
is_target = (targets[:, None] == own).to(chances.dtype)
return torch.einsum("no,n->no", chances - is_target, gradient), None, None
