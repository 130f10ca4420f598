# wrong value: first digits alone: is all of it in float64?
# [answer 2]
t = torch.tensor([typical(repeats) for repeats in seconds])
n = torch.tensor(sizes)
rows = torch.stack([1 / t, n / t], dim=1)
solution = torch.linalg.lstsq(rows, torch.ones(len(sizes), 1)).solution
alpha, beta = solution.flatten().tolist()
return alpha, beta
