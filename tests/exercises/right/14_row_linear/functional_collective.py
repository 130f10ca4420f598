# right: the sum by a functional collective, the bias added as a row
# [answer 1]
from torch.distributed._functional_collectives import all_reduce

return all_reduce(share, "sum", dist.group.WORLD) + 0
# [answer 2]
return gradient.view_as(gradient)
# [answer 3]
y = SumOverRanks.apply(torch.matmul(x, self.weight.t()))
return y + self.bias.expand_as(y)
