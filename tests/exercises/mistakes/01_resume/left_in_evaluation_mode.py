# wrong value: save_snapshot left | in evaluation mode
# [answer 1]
model.eval()
state = {
    "model": model.state_dict(),
    "optimizer": optimizer.state_dict(),
    "order": loader_generator.get_state(),
    "dropout": torch.get_rng_state(),
    "epochs_run": epochs_run,
}
torch.save(state, path)
# [answer 2]
state = torch.load(path, weights_only=True)
model.load_state_dict(state["model"])
optimizer.load_state_dict(state["optimizer"])
loader_generator.set_state(state["order"])
torch.set_rng_state(state["dropout"])
return state["epochs_run"]
