# exception: CheckpointException | missing key in checkpoint state_dict: optim
# [answer 2]
of_model, of_optimizer = get_state_dict(model, optimizer)
state = {"model": of_model, "optimizer": of_optimizer}
dcp.save(state | {"scheduler": scheduler.state_dict()}, checkpoint_id=folder)
# [answer 3]
of_model, of_optimizer = get_state_dict(model, optimizer)
state = {"model": of_model, "optim": of_optimizer, "scheduler": scheduler.state_dict()}
dcp.load(state, checkpoint_id=folder)
set_state_dict(
    model,
    optimizer,
    model_state_dict=state["model"],
    optim_state_dict=state["optim"],
)
scheduler.load_state_dict(state["scheduler"])
