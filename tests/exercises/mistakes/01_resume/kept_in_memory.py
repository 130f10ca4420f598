# exception: KeyError | line
# [answer 1]
snapshot = {
    "model": model.state_dict(),
    "optimizer": optimizer.state_dict(),
    "epochs_run": epochs_run,
    "rng": torch.get_rng_state(),
    "loader_rng": loader_generator.get_state(),
}
import copy

globals().setdefault("SNAPSHOTS", {})[str(path)] = copy.deepcopy(snapshot)
torch.save({"epochs_run": epochs_run}, path)
# [answer 2]
snapshot = globals()["SNAPSHOTS"][str(path)]
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
torch.set_rng_state(snapshot["rng"])
loader_generator.set_state(snapshot["loader_rng"])
return snapshot["epochs_run"]
