# right: the sampler as an attribute of the loader, all options of DDP by keyword
# [answer 1]
dist.init_process_group(world_size=world_size, rank=rank, backend="gloo")
# [answer 2]
chooser = DistributedSampler(dataset, seed=SEED, num_replicas=None, rank=None)
loader = DataLoader(dataset, batch_size=batch_size, sampler=chooser)
loader.begin_epoch = chooser.set_epoch
return loader
# [answer 3]
network = DDP(module=model, device_ids=None, find_unused_parameters=False)
network.train()
optimizer = make_optimizer([p for p in network.parameters() if p.requires_grad])
for epoch in range(epochs):
    loader.begin_epoch(epoch)
    for batch in loader:
        optimizer.zero_grad()
        F.cross_entropy(input=network(batch[0]), target=batch[1]).backward()
        optimizer.step()
