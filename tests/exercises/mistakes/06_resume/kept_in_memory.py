# exception: AttributeError | kept
# [answer 2]
import copy

state = {"rng": own}
for name in ("model", "optimizer", "scheduler"):
    state[name] = copy.deepcopy(getattr(training, name).state_dict())
state["epoch"], state["steps_run"] = training.epoch, training.steps_run
save_snapshot.kept = state
if dist.get_rank() == 0:
    torch.save(state, path)
dist.barrier()
# [answer 3]
state = save_snapshot.kept
for name in ("model", "optimizer", "scheduler"):
    getattr(training, name).load_state_dict(state[name])
training.epoch, training.steps_run = state["epoch"], state["steps_run"]
torch.set_rng_state(state["rng"])
