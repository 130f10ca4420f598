# wrong value: running_mean | what the new process had before | load_snapshot
# [answer 1]
snapshot = {
    "model": {name: p.detach().clone() for name, p in model.named_parameters()},
    "optimizer": optimizer.state_dict(),
    "epochs_run": epochs_run,
    "rng": torch.get_rng_state(),
    "loader_rng": loader_generator.get_state(),
}
torch.save(snapshot, path)
# [answer 2]
snapshot = torch.load(path, weights_only=True)
model.load_state_dict(snapshot["model"], strict=False)
optimizer.load_state_dict(snapshot["optimizer"])
torch.set_rng_state(snapshot["rng"])
loader_generator.set_state(snapshot["loader_rng"])
return snapshot["epochs_run"]
