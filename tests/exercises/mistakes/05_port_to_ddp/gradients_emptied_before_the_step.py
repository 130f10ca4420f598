# wrong value: is what it was before | step while .grad holds its gradients
# [answer 3]
ddp_model = DDP(model)
optimizer = make_optimizer(model.parameters())
for epoch in range(epochs):
    loader.sampler.set_epoch(epoch)
    for images, labels in loader:
        F.cross_entropy(ddp_model(images), labels).backward()
        optimizer.zero_grad()
        optimizer.step()
