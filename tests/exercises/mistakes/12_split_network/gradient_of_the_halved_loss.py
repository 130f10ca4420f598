# wrong value: the gradient of | in the second part | is 0.5 times
# [answer 2]
hidden = torch.empty(len(labels), *shape, dtype=torch.float64)
dist.recv(hidden, src=other)
hidden.requires_grad_()
loss = F.cross_entropy(layers(hidden), labels)
(loss / 2).backward()
dist.send(hidden.grad, dst=other)
return loss.detach()
