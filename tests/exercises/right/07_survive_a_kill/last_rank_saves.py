# right: one rank saves, though not rank 0
# [answer 1]
try:
    with path.open("rb") as file:
        weights, memory, steps = torch.load(file)
except FileNotFoundError:
    return 0
model.load_state_dict(weights)
optimizer.load_state_dict(memory)
return steps
# [answer 2]
last = dist.get_world_size() - 1
for step in range(steps_run, total_steps):
    x, y = data(step)
    optimizer.zero_grad()
    F.mse_loss(ddp_model(x), y).backward()
    optimizer.step()
    if (step + 1) % save_every == 0 and dist.get_rank() == last:
        state = model.state_dict(), optimizer.state_dict(), step + 1
        write_snapshot(state, path)
