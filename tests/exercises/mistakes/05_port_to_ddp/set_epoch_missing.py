# wrong value: its own order | which epoch it is
# [answer 3]
ddp_model = DDP(model)
optimizer = make_optimizer(model.parameters())
for epoch in range(epochs):
    for images, labels in loader:
        optimizer.zero_grad()
        F.cross_entropy(ddp_model(images), labels).backward()
        optimizer.step()
