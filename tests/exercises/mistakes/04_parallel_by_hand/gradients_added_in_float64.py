# exception: RuntimeError: attempting to assign a gradient with dtype 'double'
# [answer 3]
copies = [replica.parameters() for replica in self.replicas]
for parameter, *others in zip(self.module.parameters(), *copies, strict=True):
    shares = [other.grad for other in others if other.grad is not None]
    if shares:
        total = torch.zeros(parameter.shape, dtype=torch.float64)
        for share in shares:
            total += share
        before = parameter.grad
        parameter.grad = total if before is None else before + total
