# wrong value: 0.weight after 2 epochs, SGD | train the model that is passed
# [answer 3]
import copy

ddp_model = DDP(copy.deepcopy(model))
optimizer = make_optimizer(ddp_model.parameters())
for epoch in range(epochs):
    loader.sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        F.cross_entropy(ddp_model(images), labels).backward()
        optimizer.step()
