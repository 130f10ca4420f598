# exception: AttributeError | kept
# [answer 2]
of_model, of_optimizer = get_state_dict(model, optimizer)
state = {"model": of_model, "optimizer": of_optimizer}
save.kept = scheduler.state_dict()
dcp.save(state, checkpoint_id=folder)
# [answer 3]
of_model, of_optimizer = get_state_dict(model, optimizer)
state = {"model": of_model, "optimizer": of_optimizer}
dcp.load(state, checkpoint_id=folder)
of_model, of_optimizer = state["model"], state["optimizer"]
how = {"model_state_dict": of_model, "optim_state_dict": of_optimizer}
set_state_dict(model, optimizer, **how)
scheduler.load_state_dict(save.kept)
