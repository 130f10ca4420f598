# exception: empty parameter list | optimizer = make_optimizer(parameters)
# [answer 3]
ddp_model = DDP(model)
parameters = ddp_model.parameters()
print(sum(p.numel() for p in parameters), "numbers to train")
optimizer = make_optimizer(parameters)
for epoch in range(epochs):
    loader.sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        F.cross_entropy(ddp_model(images), labels).backward()
        optimizer.step()
