# wrong value: resumes after the first kill
# [answer 2]
for step in range(steps_run, total_steps):
    x, y = data(step)
    optimizer.zero_grad()
    F.mse_loss(ddp_model(x), y).backward()
    optimizer.step()
    if (step + 1) % save_every == 0 and dist.get_rank() == 0:
        snapshot = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        write_snapshot({**snapshot, "steps_run": step}, path)
