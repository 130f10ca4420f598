# wrong value: typical takes the lower of the two in the middle
# [answer 1]
return torch.tensor(repeats[1:], dtype=torch.float64).median().item()
