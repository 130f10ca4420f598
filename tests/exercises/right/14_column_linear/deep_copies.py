# right: copies first, cut afterwards; the sum in a flat tensor
# [answer 1]
flat = gradient.flatten().clone()
dist.all_reduce(flat)
return flat.view(gradient.shape)
# [answer 2]
parts = dist.get_world_size()
copies = [tensor.data.clone() for tensor in (whole.weight, whole.bias)]
weight, bias = (torch.chunk(copy, parts)[dist.get_rank()] for copy in copies)
self.register_parameter("weight", nn.Parameter(weight))
self.register_parameter("bias", nn.Parameter(bias))
