# wrong value: activations' sum | pass backward() the gradient received
# [answer 1]
activations = layers(images)
dist.send(activations.detach(), dst=other)
gradient = torch.empty_like(activations)
dist.recv(gradient, src=other)
activations.sum().backward()
