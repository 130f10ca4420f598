# wrong value: the loss that run_second returns | is a `return` missing?
# [answer 2]
hidden = torch.empty(len(labels), *shape, dtype=torch.float64)
dist.recv(hidden, src=other)
hidden.requires_grad_()
loss = F.cross_entropy(layers(hidden), labels)
loss.backward()
dist.send(hidden.grad, dst=other)
