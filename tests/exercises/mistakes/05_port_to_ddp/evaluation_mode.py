# wrong value: the model was in evaluation mode while it was trained
# [answer 3]
ddp_model = DDP(model)
optimizer = make_optimizer(model.parameters())
ddp_model.eval()
for epoch in range(epochs):
    loader.sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        F.cross_entropy(ddp_model(images), labels).backward()
        optimizer.step()
