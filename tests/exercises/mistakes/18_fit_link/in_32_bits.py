# wrong value: alpha is
# [answer 2]
t = torch.tensor([typical(repeats) for repeats in seconds])
n = torch.tensor(sizes)
rows = torch.stack([1 / t, n / t], dim=1)
return tuple(torch.linalg.lstsq(rows, torch.ones(len(sizes), 1)).solution.flatten().tolist())
