# wrong value: get_last_lr()
# [answer 2]
m, o = get_state_dict(model, optimizer)
dcp.save({"model": m, "optimizer": o, "scheduler": {"last_epoch": scheduler.last_epoch}}, checkpoint_id=folder)
# [answer 3]
m, o = get_state_dict(model, optimizer)
state = {"model": m, "optimizer": o, "scheduler": {"last_epoch": 0}}
dcp.load(state, checkpoint_id=folder)
set_state_dict(model, optimizer, model_state_dict=m, optim_state_dict=o)
scheduler.last_epoch = state["scheduler"]["last_epoch"]
