# right: copies that autograd knows of, so that backward adds up by itself
# [answer 2]
from torch.func import functional_call

class Replica(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.shell = (copy.deepcopy(module),)
        self.weights = {k: p.clone() for k, p in module.named_parameters()}

    def forward(self, x):
        return functional_call(self.shell[0], self.weights, (x,))

chunks = inputs.chunk(self.parts)
return torch.cat(parallel_apply([Replica(self.module) for _ in chunks], chunks))
# [answer 3]
pass
