# hang: waits in broadcast | a send or receive without a matching call
# [answer 1]
hidden = layers(images)
dist.broadcast(hidden.detach(), src=dist.get_rank())
gradient = torch.empty_like(hidden)
dist.recv(gradient, src=other)
hidden.backward(gradient)
