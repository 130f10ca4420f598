# wrong value: of two passes | is that of the last pass alone
# [answer 3]
replicas = (replica.parameters() for replica in self.replicas)
for parameter, *copies in zip(self.module.parameters(), *replicas, strict=True):
    shares = [copy.grad for copy in copies if copy.grad is not None]
    if shares:
        parameter.grad = sum(shares)
