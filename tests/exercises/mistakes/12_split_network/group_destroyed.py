# exception: not been initialized | this process is in no group here
# [answer 1]
    out = layers(images)
    dist.send(out.detach(), other)
    g = torch.empty_like(out)
    dist.recv(g, other)
    out.backward(g)
    dist.destroy_process_group()
# [answer 2]
    x = torch.empty(len(labels), *shape, dtype=torch.float64)
    dist.recv(x, other)
    x.requires_grad_()
    loss = F.cross_entropy(layers(x), labels)
    loss.backward()
    dist.send(x.grad, other)
    return loss
