# wrong value: the number of epochs that load_snapshot returns | is 6, expected 7
# [answer 2]
snapshot = torch.load(path, weights_only=True)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
torch.set_rng_state(snapshot["rng"])
loader_generator.set_state(snapshot["loader_rng"])
return snapshot["epochs_run"] - 1
