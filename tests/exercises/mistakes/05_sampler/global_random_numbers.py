# wrong way: global random numbers
# [answer 1]
torch.manual_seed(seed + epoch)
return torch.randperm(size).tolist()
