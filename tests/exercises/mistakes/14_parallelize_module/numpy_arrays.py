# wrong value: whole_gradients | expected dict[str, torch.Tensor]
# [answer 2]
return {n: p.grad.full_tensor().numpy() for n, p in block.named_parameters()}
