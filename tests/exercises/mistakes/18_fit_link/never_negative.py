# wrong value: best alpha is negative: alpha is 0, expected -
# [answer 2]
t = torch.tensor([typical(some) for some in seconds], dtype=torch.float64)
n = torch.tensor(sizes, dtype=torch.float64)
rows = torch.stack([1 / t, n / t], dim=1)
alpha, beta = torch.linalg.lstsq(rows, torch.ones_like(t)[:, None]).solution
return max(alpha.item(), 0.0), max(beta.item(), 0.0)
