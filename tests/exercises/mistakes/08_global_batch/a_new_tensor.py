# wrong value: backward() of the loss doesn't reach the model
# [answer 2]
share = losses.sum().item() * world_size / global_batch
return torch.tensor(share, requires_grad=True)
