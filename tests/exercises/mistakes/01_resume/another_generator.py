# wrong value: 2 shuffled epochs after the snapshot
# [answer 2]
snapshot = torch.load(path, weights_only=True)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
torch.set_rng_state(snapshot["rng"])
loader_generator = torch.Generator()
loader_generator.set_state(snapshot["loader_rng"])
return snapshot["epochs_run"]
