# exception: NoneType | hidden.grad | until backward() has run
# [answer 2]
hidden = torch.empty(len(labels), *shape, dtype=torch.float64)
dist.recv(hidden, src=other)
hidden.requires_grad_()
loss = F.cross_entropy(layers(hidden), labels)
dist.send(hidden.grad, dst=other)
loss.backward()
return loss.detach()
