# wrong value: after loading
# [answer 1]
if dist.get_rank() == 0:
    torch.save(
        {
            "model": ddp_model.module.state_dict(),
            "optimizer": optimizer.state_dict(),
            "epochs_run": epochs_run,
        },
        path,
    )
dist.barrier()
# [answer 2]
snapshot = torch.load(path, map_location="cpu", weights_only=True)
wrapped = {f"module.{key}": value for key, value in snapshot["model"].items()}
model.load_state_dict(wrapped, strict=False)
optimizer.load_state_dict(snapshot["optimizer"])
return snapshot["epochs_run"]
