# crash: rank 0 | different dtypes or numbers of elements
# [answer 2]
hidden = torch.empty(len(labels), *shape)
dist.recv(hidden, src=other)
hidden = hidden.double().requires_grad_()
loss = F.cross_entropy(layers(hidden), labels)
loss.backward()
dist.send(hidden.grad, dst=other)
return loss.detach()
