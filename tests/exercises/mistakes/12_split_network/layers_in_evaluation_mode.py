# wrong value: the layers are left in evaluation mode
# [answer 1]
layers.eval()
hidden = layers(images)
dist.send(hidden.detach(), dst=other)
gradient = torch.empty_like(hidden)
dist.recv(gradient, src=other)
hidden.backward(gradient)
