# wrong value: epochs_run in the file | is 2, expected 1
# [answer 1]
if dist.get_rank() == 0:
    torch.save(
        {
            "model": ddp_model.module.state_dict(),
            "optimizer": optimizer.state_dict(),
            "epochs_run": epochs_run + 1,
        },
        path,
    )
dist.barrier()
# [answer 2]
snapshot = torch.load(path, map_location="cpu", weights_only=True)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
return snapshot["epochs_run"] - 1
