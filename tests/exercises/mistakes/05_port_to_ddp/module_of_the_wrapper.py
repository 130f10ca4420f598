# wrong value: went past the DDP wrapper | 05_ddp_spawn
# [answer 3]
ddp_model = DDP(model)
optimizer = make_optimizer(ddp_model.parameters())
for epoch in range(epochs):
    loader.sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        F.cross_entropy(ddp_model.module(images), labels).backward()
        optimizer.step()
