# wrong value: cut off from the weights
# [answer 2]
values = torch.tensor([loss.item() for loss in losses], dtype=torch.float64)
return (values * torch.tensor(sizes)).sum() / sum(sizes)
