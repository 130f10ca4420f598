# wrong value: the optimizer's learning rate | after loading
# [answer 3]
of_model, of_optimizer = get_state_dict(model, optimizer)
state = {"model": of_model, "optimizer": of_optimizer}
state["scheduler"] = scheduler.state_dict()
dcp.load(state, checkpoint_id=folder)
scheduler.load_state_dict(state["scheduler"])
