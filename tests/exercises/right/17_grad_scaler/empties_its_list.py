# right: takes the gradients out of the list, one by one
# [answer 1]
ok = True
while gradients:
    g = gradients.pop()
    g /= self.scale
    ok = ok and bool(g.isfinite().all())
f = torch.tensor(float(ok))
dist.all_reduce(f, op=dist.ReduceOp.MIN)
finite = f.item() == 1
