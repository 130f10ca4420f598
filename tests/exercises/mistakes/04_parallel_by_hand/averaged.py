# wrong value: the mean of the parts' shares, not their sum
# [answer 3]
for replica in self.replicas:
    pairs = zip(self.module.parameters(), replica.parameters(), strict=True)
    for parameter, share in pairs:
        if share.grad is None:
            continue
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        parameter.grad += share.grad / len(self.replicas)
