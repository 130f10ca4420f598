# wrong value: epochs_run in the file | is '1', expected 1
# [answer 1]
if dist.get_rank() == 0:
    torch.save(
        {
            "model": ddp_model.module.state_dict(),
            "optimizer": optimizer.state_dict(),
            "epochs_run": str(epochs_run),
        },
        path,
    )
dist.barrier()
# [answer 2]
snapshot = torch.load(path, map_location="cpu", weights_only=True)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
return int(snapshot["epochs_run"])
