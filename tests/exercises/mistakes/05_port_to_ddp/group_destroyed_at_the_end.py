# wrong value: ranks 0, 1 and 2: your code left no process group for its caller
# [answer 3]
ddp_model = DDP(model)
optimizer = make_optimizer(model.parameters())
for epoch in range(epochs):
    loader.sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        F.cross_entropy(ddp_model(images), labels).backward()
        optimizer.step()
dist.destroy_process_group()
