# right: the tensor that receives is a leaf from the start
# [answer 1]
hidden = layers(images)
dist.send(hidden, dst=other)
gradient = torch.zeros_like(hidden)
dist.recv(gradient, src=other)
torch.autograd.backward(hidden, gradient)
# [answer 2]
hidden = torch.zeros(len(labels), *shape, dtype=torch.float64, requires_grad=True)
dist.recv(hidden.detach(), src=other)
loss = F.cross_entropy(layers(hidden), labels)
loss.backward()
dist.send(hidden.grad, dst=other)
return loss
