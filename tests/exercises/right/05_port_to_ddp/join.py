# right: under join(), which would allow unequal numbers of steps
# [answer 3]
ddp_model = DDP(model, gradient_as_bucket_view=True)
optimizer = make_optimizer(ddp_model.parameters())
with ddp_model.join():
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        for images, labels in loader:
            F.cross_entropy(ddp_model(images), labels).backward()
            optimizer.step()
            optimizer.zero_grad()
