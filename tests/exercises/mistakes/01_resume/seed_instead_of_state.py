# wrong value: 2 epochs with dropout after the snapshot
# [answer 1]
torch.save(
    {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epochs_run": epochs_run,
        "seed": torch.initial_seed(),
        "loader_rng": loader_generator.get_state(),
    },
    path,
)
# [answer 2]
snapshot = torch.load(path, weights_only=True)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
torch.manual_seed(snapshot["seed"])
loader_generator.set_state(snapshot["loader_rng"])
return snapshot["epochs_run"]
