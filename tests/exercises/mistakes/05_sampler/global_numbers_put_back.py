# wrong value: the order of 13 in epoch 0
# [answer 1]
state = torch.get_rng_state()
torch.manual_seed(seed * 31 + epoch)
order = torch.randperm(size).tolist()
torch.set_rng_state(state)
return order
