# right: gathers the maxima, scatters the ones
# [answer 1]
own = scores.amax(dim=1)
slots = [torch.empty_like(own) for _ in range(dist.get_world_size())]
dist.all_gather(slots, own)
return torch.stack(slots).amax(dim=0)
# [answer 2]
wanted = torch.zeros(len(targets), dtype=scores.dtype)
wanted[mine] = scores[mine, place[mine]]
dist.all_reduce(wanted)
return wanted
# [answer 3]
place = targets - ctx.first
mine = (place >= 0) & (place < chances.shape[1])
of_scores = chances.clone()
of_scores[mine, place[mine]] -= 1
of_scores *= gradient[:, None]
return of_scores, None, None
