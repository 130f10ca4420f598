# wrong value: the losses in float32 | has dtype float64, expected float32
# [answer 2]
wanted = torch.zeros(len(targets), dtype=torch.float64)
wanted[is_local] = scores[is_local, place[is_local]].double()
dist.all_reduce(wanted)
return wanted
