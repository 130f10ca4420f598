# wrong value: weights_only=True | refuses the file
# [answer 1]
torch.save(
    {
        "model": model,
        "optimizer": optimizer.state_dict(),
        "epochs_run": epochs_run,
        "rng": torch.get_rng_state(),
        "loader_rng": loader_generator.get_state(),
    },
    path,
)
# [answer 2]
snapshot = torch.load(path, weights_only=False)
model.load_state_dict(snapshot["model"].state_dict())
optimizer.load_state_dict(snapshot["optimizer"])
torch.set_rng_state(snapshot["rng"])
loader_generator.set_state(snapshot["loader_rng"])
return snapshot["epochs_run"]
