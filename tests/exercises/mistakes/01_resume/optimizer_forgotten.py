# wrong value: 2 epochs after the snapshot, SGD | resumed run equals the uninterrupted
# [answer 1]
torch.save(
    {
        "model": model.state_dict(),
        "epochs_run": epochs_run,
        "rng": torch.get_rng_state(),
        "loader_rng": loader_generator.get_state(),
    },
    path,
)
# [answer 2]
snapshot = torch.load(path, weights_only=True)
model.load_state_dict(snapshot["model"])
torch.set_rng_state(snapshot["rng"])
loader_generator.set_state(snapshot["loader_rng"])
return snapshot["epochs_run"]
