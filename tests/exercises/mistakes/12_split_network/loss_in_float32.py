# wrong value: the loss that run_second returns | slightly off | the gradient of 1.weight in the first part: is slightly off
# [answer 2]
x = torch.empty(len(labels), *shape, dtype=torch.float64)
dist.recv(x, src=other)
x.requires_grad_()
loss = F.cross_entropy(layers(x).float(), labels).double()
loss.backward()
dist.send(x.grad, dst=other)
return loss
