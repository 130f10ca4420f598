# wrong value: the loss of step 3 on 1 x 4 ranks, after loading
# [answer 2]
state = {"model": model.state_dict(), "scheduler": scheduler.state_dict()}
dcp.save(state, checkpoint_id=folder)
# [answer 3]
state = {"model": model.state_dict(), "scheduler": scheduler.state_dict()}
dcp.load(state, checkpoint_id=folder)
model.load_state_dict(state["model"])
scheduler.load_state_dict(state["scheduler"])
for group, rate in zip(optimizer.param_groups, scheduler.get_last_lr()):
    group["lr"] = rate
