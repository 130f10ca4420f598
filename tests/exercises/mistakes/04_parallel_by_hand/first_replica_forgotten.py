# wrong value: .grad for 12 images in 3 parts
# [answer 3]
for replica in self.replicas[1:]:
    for parameter, share in zip(self.module.parameters(), replica.parameters()):
        if share.grad is None:
            continue
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        parameter.grad += share.grad
