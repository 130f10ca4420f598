# right: other names, another order, a file written under a temporary name first
# [answer 1]
temporary = path.with_suffix(".tmp")
torch.save(
    [
        [torch.random.get_rng_state(), loader_generator.get_state()],
        epochs_run,
        [part.state_dict() for part in (model, optimizer)],
    ],
    temporary,
)
temporary.replace(path)
# [answer 2]
(rng, order), epochs_run, states = torch.load(path, weights_only=True)
for part, state in zip((model, optimizer), states):
    part.load_state_dict(state)
loader_generator.set_state(order)
torch.random.set_rng_state(rng)
return epochs_run
