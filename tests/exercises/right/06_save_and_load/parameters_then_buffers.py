# right: the keys of the plain model, in another order
# [answer 1]
if dist.get_rank() == 0:
    model = ddp_model.module
    state = dict(model.named_parameters()) | dict(model.named_buffers())
    state = {k: v.detach() for k, v in state.items()}
    torch.save(
        {"model": state, "optimizer": optimizer.state_dict(), "epochs_run": epochs_run},
        path,
    )
dist.barrier()
# [answer 2]
snapshot = torch.load(path, map_location="cpu", weights_only=True)
model.load_state_dict(snapshot["model"], strict=False)
optimizer.load_state_dict(snapshot["optimizer"])
return snapshot["epochs_run"]
