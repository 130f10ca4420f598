# exception: pair is not connected | can't receive from itself
# [answer 1]
hidden = layers(images)
dist.send(hidden.detach(), dst=other)
gradient = torch.empty_like(hidden)
dist.recv(gradient, src=dist.get_rank())
hidden.backward(gradient)
