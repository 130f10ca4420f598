# wrong value: lift.grad for | is None after reduce
# [answer 3]
for parameter, *shares in zip(
    self.module.parameters(), *(copied.parameters() for copied in self.replicas)
):
    if any(share.grad is None for share in shares):
        continue
    total = sum(share.grad for share in shares)
    parameter.grad = total if parameter.grad is None else parameter.grad + total
