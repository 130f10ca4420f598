# not a solution: changed the default dtype | give `dtype=`
# [answer 2]
torch.set_default_dtype(torch.float64)
t = torch.tensor([typical(repeats) for repeats in seconds])
rows = torch.stack([1 / t, torch.tensor(sizes) / t], dim=1)
alpha, beta = torch.linalg.lstsq(rows, torch.ones(len(t), 1)).solution.flatten().tolist()
return alpha, beta
