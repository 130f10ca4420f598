# wrong value: the keys of the saved model
# [answer 1]
if dist.get_rank() == 0:
    snapshot = {
        "model": {n: p.detach() for n, p in ddp_model.module.named_parameters()},
        "optimizer": optimizer.state_dict(),
        "epochs_run": epochs_run,
    }
    torch.save(snapshot, path)
dist.barrier()
# [answer 2]
snapshot = torch.load(path, map_location="cpu", weights_only=True)
model.load_state_dict(snapshot["model"], strict=False)
optimizer.load_state_dict(snapshot["optimizer"])
return snapshot["epochs_run"]
