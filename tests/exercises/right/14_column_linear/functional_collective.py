# right: the sum by a functional collective, which returns a new tensor
# [answer 1]
from torch.distributed._functional_collectives import all_reduce

return all_reduce(gradient.contiguous(), "sum", dist.group.WORLD)
