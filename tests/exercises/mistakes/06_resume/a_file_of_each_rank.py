# wrong value: rank 0 wrote snapshot.pt.0, not snapshot.pt
# [answer 2]
state = {
    "model": training.model.state_dict(),
    "optimizer": training.optimizer.state_dict(),
    "scheduler": training.scheduler.state_dict(),
    "epoch": training.epoch,
    "steps_run": training.steps_run,
    "random_numbers": own,
}
torch.save(state, f"{path}.{dist.get_rank()}")
dist.barrier()
# [answer 3]
state = torch.load(f"{path}.{dist.get_rank()}", weights_only=True)
training.model.load_state_dict(state["model"])
training.optimizer.load_state_dict(state["optimizer"])
training.scheduler.load_state_dict(state["scheduler"])
training.epoch, training.steps_run = state["epoch"], state["steps_run"]
torch.set_rng_state(state["random_numbers"])
