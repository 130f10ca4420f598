# wrong value: this rank's own value | after 2 epochs, SGD | went past the DDP wrapper
# [answer 3]
ddp_model = DDP(model)
optimizer = make_optimizer(ddp_model.parameters())
for epoch in range(epochs):
    loader.sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
