# right: messages as a batch of operations
# [answer 1]
hidden = layers(images)
gradient = torch.empty_like(hidden, requires_grad=False)
messages = [
    dist.P2POp(dist.isend, hidden.detach(), other),
    dist.P2POp(dist.irecv, gradient, other),
]
for work in dist.batch_isend_irecv(messages):
    work.wait()
hidden.backward(gradient=gradient)
