# right: prefix removed from the wrapper's keys, a broadcast in place of the barrier
# [answer 1]
written = torch.zeros(1)
if dist.get_rank() == 0:
    model = {
        key.removeprefix("module."): value.clone()
        for key, value in ddp_model.state_dict().items()
    }
    with open(path, "wb") as file:
        torch.save(
            dict(model=model, optimizer=optimizer.state_dict(), epochs_run=epochs_run),
            file,
        )
    written += 1
dist.broadcast(written, src=0)
# [answer 2]
snapshot = torch.load(path, weights_only=True, map_location=torch.device("cpu"))
for part, state in ((model, "model"), (optimizer, "optimizer")):
    part.load_state_dict(snapshot[state])
return snapshot["epochs_run"]
