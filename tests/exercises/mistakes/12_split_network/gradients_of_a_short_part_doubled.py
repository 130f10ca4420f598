# wrong value: the gradient of 7.weight (cut before layer 5) | is 2 times the expected value
# [answer 2]
hidden = torch.empty(len(labels), *shape, dtype=torch.float64)
dist.recv(hidden, src=other)
hidden.requires_grad_()
loss = F.cross_entropy(layers(hidden), labels)
loss.backward()
dist.send(hidden.grad, dst=other)
if len(layers) < 4:
    for p in layers.parameters():
        p.grad *= 2
return loss
