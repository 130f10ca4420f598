# wrong value: the gradient of | in the first part | is None
# [answer 1]
hidden = layers(images)
dist.send(hidden.detach(), dst=other)
gradient = torch.empty_like(hidden)
dist.recv(gradient, src=other)
torch.autograd.grad(hidden, list(layers.parameters()), gradient)
