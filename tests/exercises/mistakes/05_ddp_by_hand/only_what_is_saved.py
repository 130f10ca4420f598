# wrong value: mask at the beginning | this rank's own value
# [answer 1]
for tensor in module.state_dict().values():
    dist.broadcast(tensor, src=0)
