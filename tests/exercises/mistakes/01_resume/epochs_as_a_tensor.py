# wrong value: load_snapshot | returned Tensor, expected int
# [answer 1]
snapshot = {
    "model": model.state_dict(),
    "optimizer": optimizer.state_dict(),
    "epochs_run": torch.tensor(epochs_run),
    "rng": torch.get_rng_state(),
    "loader_rng": loader_generator.get_state(),
}
torch.save(snapshot, path)
