# wrong value: the gradient of | in the first part
# [answer 1]
hidden = layers(images)
dist.send(hidden.detach(), dst=other)
gradient = torch.empty_like(hidden)
dist.recv(gradient, src=other)
hidden.backward(gradient * hidden.detach())
