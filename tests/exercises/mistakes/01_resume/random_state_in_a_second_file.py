# exception: FileNotFoundError | .pt.random
# [answer 1]
state = {
    "model": model.state_dict(),
    "optimizer": optimizer.state_dict(),
    "order": loader_generator.get_state(),
    "epochs_run": epochs_run,
}
torch.save(state, path)
torch.save(torch.get_rng_state(), f"{path}.random")
# [answer 2]
state = torch.load(path, weights_only=True)
model.load_state_dict(state["model"])
optimizer.load_state_dict(state["optimizer"])
loader_generator.set_state(state["order"])
torch.set_rng_state(torch.load(f"{path}.random", weights_only=True))
return state["epochs_run"]
