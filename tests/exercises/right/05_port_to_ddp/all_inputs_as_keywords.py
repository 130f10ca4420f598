# right, torch>=2.13: small buckets, gradients as views of them, parameters of the wrapper
# [answer 3]
ddp_model = DDP(model, gradient_as_bucket_view=True, forward_sync_buffers=False)
optimizer = make_optimizer(ddp_model.parameters())
ddp_model.train()
for epoch in range(epochs):
    loader.sampler.set_epoch(epoch)
    for inputs, targets in loader:
        optimizer.zero_grad(set_to_none=False)
        F.cross_entropy(ddp_model(inputs), targets).backward()
        optimizer.step()
