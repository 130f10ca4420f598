# wrong value: activations' sum | give backward() what came
# [answer 1]
activations = layers(images)
dist.send(activations.detach(), dst=other)
gradient = torch.empty_like(activations)
dist.recv(gradient, src=other)
activations.sum().backward()
