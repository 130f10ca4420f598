# right: everything said in full, the optimizer made first, parameters of the wrapper
# [answer 1]
import os
os.environ["RANK"], os.environ["WORLD_SIZE"] = str(rank), str(world_size)
dist.init_process_group(backend="gloo", init_method="env://")
# [answer 2]
sampler = DistributedSampler(
    dataset, dist.get_world_size(), dist.get_rank(), seed=SEED, drop_last=False
)
return DataLoader(dataset, batch_size=batch_size, shuffle=False, sampler=sampler)
# [answer 3]
optimizer = make_optimizer(list(model.parameters()))
wrapped = nn.parallel.DistributedDataParallel(model)
for epoch in range(1, epochs + 1):
    loader.sampler.set_epoch(epoch)
    for images, labels in loader:
        loss = F.cross_entropy(wrapped(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
