# right: gradients asked for by torch.autograd.grad, and a broadcast-free swap of roles
# [answer 1]
hidden = layers(images.detach())
dist.send(hidden.detach().clone(), other)
received = torch.zeros(hidden.shape, dtype=hidden.dtype)
dist.recv(received, other)
parameters = list(layers.parameters())
grads = torch.autograd.grad(hidden, parameters, received)
for parameter, grad in zip(parameters, grads):
    parameter.grad = grad if parameter.grad is None else parameter.grad + grad
# [answer 2]
received = torch.zeros((labels.shape[0], *shape), dtype=torch.double)
dist.recv(received, other)
hidden = nn.Parameter(received)
log_chances = F.log_softmax(layers(hidden), dim=-1)
loss = F.nll_loss(log_chances, labels)
torch.autograd.backward(loss)
dist.send(hidden.grad.clone(), other)
return loss.detach().clone()
