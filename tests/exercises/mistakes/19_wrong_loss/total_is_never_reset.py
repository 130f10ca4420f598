# wrong value: the mean loss of epoch 1 | is the mean loss of all epochs so far
total = torch.zeros(2, dtype=torch.float64)
for epoch in range(epochs):
    sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(ddp_model(images), labels)
        loss.backward()
        optimizer.step()
        total[0] += loss.item() * len(labels)
        total[1] += len(labels)
    everyone = total.clone()
    dist.all_reduce(everyone)
    history.append(float(everyone[0] / everyone[1]))
return history
