# wrong value: the model is left in evaluation mode
# [answer 3]
model.eval()
of_model, of_optimizer = get_state_dict(model, optimizer)
state = {"model": of_model, "optimizer": of_optimizer}
state["scheduler"] = scheduler.state_dict()
dcp.load(state, checkpoint_id=folder)
of_model, of_optimizer = state["model"], state["optimizer"]
how = {"model_state_dict": of_model, "optim_state_dict": of_optimizer}
set_state_dict(model, optimizer, **how)
scheduler.load_state_dict(state["scheduler"])
