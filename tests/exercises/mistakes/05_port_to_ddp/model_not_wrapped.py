# wrong value: after 2 epochs, SGD | that of a model which this rank trains for itself
# [answer 3]
optimizer = make_optimizer(model.parameters())
for epoch in range(epochs):
    loader.sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
