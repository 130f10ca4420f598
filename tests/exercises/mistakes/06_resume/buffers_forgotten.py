# wrong value: 3 steps after the snapshot
# [answer 3]
snapshot = torch.load(path, map_location="cpu", weights_only=True)
with torch.no_grad():
    for name, p in training.model.named_parameters():
        p.copy_(snapshot["model"][name])
training.optimizer.load_state_dict(snapshot["optimizer"])
training.scheduler.load_state_dict(snapshot["scheduler"])
training.epoch = snapshot["epoch"]
training.steps_run = snapshot["steps_run"]
torch.set_rng_state(snapshot["rng"][dist.get_rank()])
