# wrong way: send | expected are
# [answer 1]
hidden = layers(images)
for _ in range(2):
    dist.send(hidden.detach(), dst=other)
gradient = torch.empty_like(hidden)
dist.recv(gradient, src=other)
hidden.backward(gradient)
# [answer 2]
hidden = torch.empty(len(labels), *shape, dtype=torch.float64)
for _ in range(2):
    dist.recv(hidden, src=other)
hidden.requires_grad_()
loss = F.cross_entropy(layers(hidden), labels)
loss.backward()
dist.send(hidden.grad, dst=other)
return loss.detach()
