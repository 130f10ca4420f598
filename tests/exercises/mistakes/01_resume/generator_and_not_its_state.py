# exception: UnpicklingError | unsupported global | save its state, such as
# [answer 1]
state = {
    "model": model.state_dict(),
    "optimizer": optimizer.state_dict(),
    "generator": loader_generator,
    "random_numbers": torch.get_rng_state(),
    "epochs_run": epochs_run,
}
torch.save(state, path)
# [answer 2]
state = torch.load(path, weights_only=True)
model.load_state_dict(state["model"])
optimizer.load_state_dict(state["optimizer"])
loader_generator.set_state(state["generator"].get_state())
torch.set_rng_state(state["random_numbers"])
return state["epochs_run"]
