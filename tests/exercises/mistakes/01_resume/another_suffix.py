# wrong value: save_snapshot must write the file path
# [answer 1]
snapshot = {
    "model": model.state_dict(),
    "optimizer": optimizer.state_dict(),
    "loader": loader_generator.get_state(),
    "numbers": torch.get_rng_state(),
    "epochs_run": epochs_run,
}
torch.save(snapshot, path.with_suffix(".pt"))
# [answer 2]
snapshot = torch.load(path.with_suffix(".pt"), weights_only=True)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
loader_generator.set_state(snapshot["loader"])
torch.set_rng_state(snapshot["numbers"])
return snapshot["epochs_run"]
