# wrong value: the sizes that fit was given, afterwards | has 0 items, expected 7
# [answer 2]
t = torch.tensor([typical(repeats) for repeats in seconds], dtype=torch.float64)
n = []
while sizes:
    n.append(sizes.pop(0))
rows = torch.stack([1 / t, torch.tensor(n, dtype=torch.float64) / t], dim=1)
solution = torch.linalg.lstsq(rows, torch.ones(len(t), 1, dtype=torch.float64)).solution
alpha, beta = solution.flatten().tolist()
return alpha, beta
