# right: the largest scores gathered as objects
# [answer 1]
own = scores.max(dim=1).values
everyone = [None] * dist.get_world_size()
dist.all_gather_object(everyone, own)
return torch.stack(everyone).amax(dim=0)
# [answer 2]
own = torch.zeros(len(scores), dtype=scores.dtype)
for i in range(len(scores)):
    if is_local[i]:
        own[i] = scores[i, place[i]]
dist.all_reduce(own)
return own
# [answer 3]
own = chances.clone()
rows = torch.arange(len(targets))
own[rows[is_local], place[is_local]] -= 1
own = own * gradient.unsqueeze(1)
return own, None, None
