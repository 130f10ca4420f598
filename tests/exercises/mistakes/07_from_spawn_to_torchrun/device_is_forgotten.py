# wrong value: setup chose no device | choose_device was not called
# [answer 1]
dist.init_process_group("gloo")
return torch.device("cpu")
