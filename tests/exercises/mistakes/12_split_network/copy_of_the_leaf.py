# exception: `.grad` of a tensor is None | hidden.grad
# [answer 2]
received = torch.empty(len(labels), *shape, dtype=torch.float64)
dist.recv(received, src=other)
hidden = received.requires_grad_().clone()
loss = F.cross_entropy(layers(hidden), labels)
loss.backward()
dist.send(hidden.grad, dst=other)
return loss.detach()
