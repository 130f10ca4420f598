# wrong value: after 2 epochs | forward pass went past the DDP wrapper
for epoch in range(epochs):
    sampler.set_epoch(epoch)
    total = torch.zeros(2, dtype=torch.float64)
    for images, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        dist.all_reduce(loss.detach(), op=dist.ReduceOp.AVG)
        loss.backward()
        optimizer.step()
        total[0] += loss.item() * len(labels)
        total[1] += len(labels)
    dist.all_reduce(total)
    history.append(float(total[0] / total[1]))
