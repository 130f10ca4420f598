# wrong value: should stay None
# [answer 3]
for i, parameter in enumerate(self.module.parameters()):
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    for replica in self.replicas:
        share = list(replica.parameters())[i]
        if share.grad is not None:
            parameter.grad += share.grad
