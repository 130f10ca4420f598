# right: the number is stored as a tensor and turned back
# [answer 1]
torch.save(
    (
        model.state_dict(),
        optimizer.state_dict(),
        torch.stack([torch.get_rng_state(), loader_generator.get_state()]),
        torch.tensor(epochs_run),
    ),
    str(path),
)
# [answer 2]
weights, moments, states, epochs = torch.load(path, weights_only=False)
model.load_state_dict(weights)
optimizer.load_state_dict(moments)
torch.set_rng_state(states[0].clone())
loader_generator.set_state(states[1].clone())
return epochs.item()
