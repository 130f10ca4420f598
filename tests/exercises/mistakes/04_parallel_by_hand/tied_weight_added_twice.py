# wrong value: again.grad
# [answer 3]
names = dict(self.module.named_parameters(remove_duplicate=False))
for r in self.replicas:
    for n, q in r.named_parameters(remove_duplicate=False):
        if q.grad is not None:
            p = names[n]
            p.grad = q.grad.clone() if p.grad is None else p.grad + q.grad
