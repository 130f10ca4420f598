# wrong value: 2 shuffled epochs after the snapshot
# [answer 1]
torch.save(
    {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epochs_run": epochs_run,
        "rng": torch.get_rng_state(),
        "loader_seed": loader_generator.initial_seed(),
    },
    path,
)
# [answer 2]
snapshot = torch.load(path, weights_only=True)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
torch.set_rng_state(snapshot["rng"])
loader_generator.manual_seed(snapshot["loader_seed"])
return snapshot["epochs_run"]
