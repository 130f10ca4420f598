# wrong value: first.grad for 12 images in 3 parts
# [answer 3]
for replica in self.replicas:
    pairs = zip(self.module.parameters(), replica.parameters(), strict=True)
    for parameter, share in pairs:
        if share.grad is not None:
            parameter.grad = share.grad
