# wrong value: after loading | weight
# [answer 2]
snapshot = torch.load(path, weights_only=True)
model = snapshot["model"]
optimizer = snapshot["optimizer"]
torch.set_rng_state(snapshot["rng"])
loader_generator.set_state(snapshot["loader_rng"])
return snapshot["epochs_run"]
