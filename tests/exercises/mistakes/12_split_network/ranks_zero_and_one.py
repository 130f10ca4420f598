# hang: rank 2 | the wrong neighbor
# [answer 1]
hidden = layers(images)
dist.send(hidden.detach(), dst=1)
gradient = torch.empty_like(hidden)
dist.recv(gradient, src=1)
hidden.backward(gradient)
