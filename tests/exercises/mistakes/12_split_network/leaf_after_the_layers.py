# exception: did not require a gradient | requires_grad_() | hidden.grad
# [answer 2]
hidden = torch.empty(len(labels), *shape, dtype=torch.float64)
dist.recv(hidden, src=other)
scores = layers(hidden)
hidden.requires_grad_()
loss = F.cross_entropy(scores, labels)
loss.backward()
dist.send(hidden.grad, dst=other)
return loss.detach()
