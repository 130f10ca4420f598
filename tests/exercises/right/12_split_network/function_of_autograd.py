# right: a function of autograd sends and receives, and torch.autograd.grad
# [answer 1]
    class Boundary(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            dist.send(t.contiguous(), other)
            ctx.save_for_backward(t)
            return t.new_zeros(())
        @staticmethod
        def backward(ctx, _):
            (t,) = ctx.saved_tensors
            g = torch.empty_like(t)
            dist.recv(g, other)
            return g
    Boundary.apply(layers(images)).backward()
# [answer 2]
    received = torch.empty((labels.numel(),) + tuple(shape), dtype=torch.float64)
    dist.recv(received, src=other)
    leaf = nn.Parameter(received)
    loss = F.cross_entropy(layers(leaf), labels)
    for p, g in zip([leaf, *layers.parameters()], torch.autograd.grad(loss, [leaf, *layers.parameters()])):
        p.grad = g
    dist.send(leaf.grad, dst=other)
    return loss
