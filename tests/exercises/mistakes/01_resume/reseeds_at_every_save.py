# wrong value: in a run that saves every epoch
# [answer 1]
torch.manual_seed(epochs_run)
torch.save(
    {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epochs_run": epochs_run,
        "loader_rng": loader_generator.get_state(),
    },
    path,
)
# [answer 2]
snapshot = torch.load(path, weights_only=True)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
loader_generator.set_state(snapshot["loader_rng"])
torch.manual_seed(snapshot["epochs_run"])
return snapshot["epochs_run"]
