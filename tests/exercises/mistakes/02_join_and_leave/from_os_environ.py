# wrong value: world size
dist.init_process_group("gloo")
try:
    total = torch.tensor(measure(), dtype=torch.float64)
    dist.all_reduce(total)
    return total.item()
finally:
    dist.destroy_process_group()
