# wrong value: 2 epochs with dropout after the snapshot
# [answer 2]
snapshot = torch.load(path, weights_only=True)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
loader_generator.set_state(snapshot["loader_rng"])
return snapshot["epochs_run"]
