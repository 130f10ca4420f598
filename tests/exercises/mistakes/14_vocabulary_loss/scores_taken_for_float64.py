# wrong value: the losses in float32 | has dtype float64, expected float32
# [answer 2]
wanted = torch.zeros(len(targets), dtype=torch.float64)
wanted[mine] = scores[mine, place[mine]].double()
dist.all_reduce(wanted)
return wanted
