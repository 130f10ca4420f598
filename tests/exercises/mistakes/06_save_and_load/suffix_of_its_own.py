# wrong value: rank 0 wrote snapshot.ckpt, not snapshot.pt
# [answer 1]
if dist.get_rank() == 0:
    torch.save(
        {
            "model": ddp_model.module.state_dict(),
            "optimizer": optimizer.state_dict(),
            "epochs_run": epochs_run,
        },
        path.with_suffix(".ckpt"),
    )
dist.barrier()
# [answer 2]
snapshot = torch.load(path.with_suffix(".ckpt"), map_location="cpu", weights_only=True)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
return snapshot["epochs_run"]
