# exception: DDP expects same model | every rank must do that
# [answer 3]
if dist.get_rank() == 0:
    ddp_model = DDP(model)
    optimizer = make_optimizer(model.parameters())
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(ddp_model(images), labels).backward()
            optimizer.step()
