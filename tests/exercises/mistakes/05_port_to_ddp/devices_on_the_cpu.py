# exception: ValueError | device_ids
# [answer 3]
ddp_model = DDP(model, device_ids=[dist.get_rank()])
optimizer = make_optimizer(model.parameters())
for epoch in range(epochs):
    loader.sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        F.cross_entropy(ddp_model(images), labels).backward()
        optimizer.step()
