# wrong value: its own order | before the loop over the batches begins
# [answer 3]
ddp_model = DDP(model)
optimizer = make_optimizer(model.parameters())
for epoch in range(epochs):
    for images, labels in loader:
        loader.sampler.set_epoch(epoch)
        optimizer.zero_grad()
        F.cross_entropy(ddp_model(images), labels).backward()
        optimizer.step()
