# wrong value: mask at the beginning | this rank's own value | nothing was communicated
# [answer 1]
for tensor in module.state_dict().values():
    dist.broadcast(tensor, src=0)
