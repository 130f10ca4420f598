# exception: NoneType | share.grad.clone()
# [answer 3]
for replica in self.replicas:
    pairs = zip(self.module.parameters(), replica.parameters(), strict=True)
    for parameter, share in pairs:
        if parameter.grad is None:
            parameter.grad = share.grad.clone()
        else:
            parameter.grad += share.grad
