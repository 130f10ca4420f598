# hang: recv | rank 2 | every rank receives first
# [answer 1]
hidden = layers(images)
gradient = torch.empty_like(hidden)
dist.recv(gradient, src=other)
dist.send(hidden.detach(), dst=other)
hidden.backward(gradient)
