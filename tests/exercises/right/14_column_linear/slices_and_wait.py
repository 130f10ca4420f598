# right: slices by hand, a sum that is started and awaited
# [answer 1]
total = torch.empty(gradient.shape, dtype=gradient.dtype)
total.copy_(gradient)
work = dist.all_reduce(total, async_op=True)
work.wait()
return total
# [answer 2]
each = -(-whole.out_features // dist.get_world_size())
part = slice(dist.get_rank() * each, (dist.get_rank() + 1) * each)
with torch.no_grad():
    self.weight = nn.Parameter(whole.weight[part].clone())
    self.bias = nn.Parameter(whole.bias[part].clone())
