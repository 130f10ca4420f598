# wrong value: after 2 epochs, SGD
# [answer 3]
ddp_model = DDP(model)
optimizer = make_optimizer(model.parameters())
for epoch in range(epochs):
    loader.sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(ddp_model(images), labels) / dist.get_world_size()
        loss.backward()
        optimizer.step()
