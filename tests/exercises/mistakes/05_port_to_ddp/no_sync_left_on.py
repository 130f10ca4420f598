# wrong value: no_sync | read: docs/lessons/05_ddp_spawn.rst
# [answer 3]
ddp_model = DDP(model)
optimizer = make_optimizer(model.parameters())
for epoch in range(epochs):
    loader.sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        with ddp_model.no_sync():
            F.cross_entropy(ddp_model(images), labels).backward()
        optimizer.step()
