# right: a batch sampler around the sampler, the method spelled out
# [answer 1]
method = f"env://?rank={rank}&world_size={world_size}"
dist.init_process_group(backend="gloo", init_method=method)
# [answer 2]
sampler = DistributedSampler(dataset, seed=SEED)
batches = torch.utils.data.BatchSampler(sampler, batch_size, drop_last=False)
return DataLoader(dataset, batch_sampler=batches)
# [answer 3]
parallel = DDP(model, broadcast_buffers=False, bucket_cap_mb=1)
optimizer = make_optimizer(parallel.parameters())
criterion = nn.CrossEntropyLoss()
for epoch in range(epochs):
    loader.batch_sampler.sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad(set_to_none=False)
        criterion(parallel(images), labels).backward()
        optimizer.step()
