# wrong value: shift at the beginning | this rank's own value | nothing was communicated
# [answer 1]
for parameter in module.parameters():
    dist.broadcast(parameter.detach(), src=0)
