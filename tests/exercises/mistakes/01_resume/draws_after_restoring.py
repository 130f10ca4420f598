# wrong value: 2 epochs with dropout after the snapshot
# [answer 2]
snapshot = torch.load(path, weights_only=True)
torch.set_rng_state(snapshot["rng"])
loader_generator.set_state(snapshot["loader_rng"])
assert torch.rand(3).shape == (3,)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
return snapshot["epochs_run"]
