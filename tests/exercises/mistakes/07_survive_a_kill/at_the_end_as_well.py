# wrong value: the number of snapshots in 7 steps | is 3, expected 2
# [answer 2]
for step in range(steps_run, total_steps):
    x, y = data(step)
    optimizer.zero_grad()
    F.mse_loss(ddp_model(x), y).backward()
    optimizer.step()
    due = (step + 1) % save_every == 0 or step + 1 == total_steps
    if due and dist.get_rank() == 0:
        snapshot = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        write_snapshot({**snapshot, "steps_run": step + 1}, path)
