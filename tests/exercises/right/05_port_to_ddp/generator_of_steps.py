# right: steps from a generator, zero_grad on the model, sampler by all its names
# [answer 1]
import datetime

dist.init_process_group(
    "gloo", None, datetime.timedelta(minutes=2), world_size, rank
)
# [answer 2]
sampler = DistributedSampler(
    dataset=dataset,
    num_replicas=dist.get_world_size(),
    rank=dist.get_rank(),
    shuffle=True,
    seed=SEED,
)
return DataLoader(dataset, sampler=sampler, batch_size=batch_size, shuffle=None)
# [answer 3]
def batches():
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        yield from loader

parallel = DDP(model)
optimizer = make_optimizer(parallel.module.parameters())
for images, labels in batches():
    parallel.zero_grad()
    output = parallel(images)
    nn.functional.cross_entropy(output, labels).backward()
    optimizer.step()
