# wrong value: the loss that run_second returns | is 0.2 times
# [answer 2]
hidden = torch.empty(len(labels), *shape, dtype=torch.float64)
dist.recv(hidden, src=other)
hidden.requires_grad_()
loss = F.cross_entropy(layers(hidden), labels) / len(labels)
loss.backward()
dist.send(hidden.grad, dst=other)
return loss.detach()
