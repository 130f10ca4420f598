# hang: all_reduce | because an `if` skips it
# [answer 2]
s = torch.zeros_like(scores[:, 0])
if is_local.any():
    s[is_local] = scores[is_local, place[is_local]]
    dist.all_reduce(s)
return s
