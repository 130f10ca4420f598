# wrong value: in a run that saves every epoch
# [answer 1]
check = torch.rand(1)
snapshot = {
    "model": model.state_dict(),
    "optimizer": optimizer.state_dict(),
    "epochs_run": epochs_run,
    "rng": torch.get_rng_state(),
    "loader_rng": loader_generator.get_state(),
    "check": check,
}
torch.save(snapshot, path)
