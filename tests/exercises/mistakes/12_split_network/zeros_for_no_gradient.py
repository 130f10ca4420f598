# wrong value: the gradient of | in the first part | is zero: zeros came back
# [answer 2]
hidden = torch.empty(len(labels), *shape, dtype=torch.float64)
dist.recv(hidden, src=other)
loss = F.cross_entropy(layers(hidden), labels)
loss.backward()
dist.send(torch.zeros_like(hidden), dst=other)
return loss.detach()
