# right: all batches are of one size, so the mean of their means is the mean
for epoch in range(epochs):
    sampler.set_epoch(epoch)
    losses = []
    for images, labels in loader:
        loss = F.cross_entropy(ddp_model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    mean = torch.stack(losses).mean()
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    history.append(mean.item())
