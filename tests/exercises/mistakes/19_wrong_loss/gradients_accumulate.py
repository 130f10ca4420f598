# wrong value: after 2 epochs | whose gradients are never zeroed
for epoch in range(epochs):
    sampler.set_epoch(epoch)
    total = torch.zeros(2, dtype=torch.float64)
    for images, labels in loader:
        loss = F.cross_entropy(ddp_model(images), labels)
        loss.backward()
        optimizer.step()
        total[0] += loss.item() * len(labels)
        total[1] += len(labels)
    dist.all_reduce(total)
    history.append(float(total[0] / total[1]))
