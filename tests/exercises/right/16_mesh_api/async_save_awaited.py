# right: saved in a thread, and waited for on every rank
# [answer 2]
of_model, of_optimizer = get_state_dict(model, optimizer)
state = {"model": of_model, "optimizer": of_optimizer}
state["scheduler"] = scheduler.state_dict()
dcp.async_save(state, checkpoint_id=folder).result()
