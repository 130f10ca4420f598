# wrong value: is None | in the second part
# [answer 2]
hidden = torch.empty(len(labels), *shape, dtype=torch.float64)
dist.recv(hidden, src=other)
hidden.requires_grad_()
loss = F.cross_entropy(layers(hidden), labels)
gradient = torch.autograd.grad(loss, hidden)[0]
dist.send(gradient, dst=other)
return loss.detach()
