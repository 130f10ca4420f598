# wrong value: the steps of the scheduler | after loading
# [answer 2]
of_model, of_optimizer = get_state_dict(model, optimizer)
dcp.save({"model": of_model, "optimizer": of_optimizer}, checkpoint_id=folder)
# [answer 3]
of_model, of_optimizer = get_state_dict(model, optimizer)
state = {"model": of_model, "optimizer": of_optimizer}
dcp.load(state, checkpoint_id=folder)
set_state_dict(model, optimizer, model_state_dict=of_model, optim_state_dict=of_optimizer)
