# exception: not iterable | optimizer = make_optimizer(ddp_model)
# [answer 3]
ddp_model = DDP(model)
optimizer = make_optimizer(ddp_model)
for epoch in range(epochs):
    loader.sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        F.cross_entropy(ddp_model(images), labels).backward()
        optimizer.step()
