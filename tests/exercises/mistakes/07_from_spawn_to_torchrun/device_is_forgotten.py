# wrong value: the device chosen on this node
# [answer 1]
dist.init_process_group("gloo")
return torch.device("cpu")
