# wrong value: after the second kill
# [answer 2]
for done, step in enumerate(range(steps_run, total_steps), start=1):
    x, y = data(step)
    optimizer.zero_grad()
    F.mse_loss(ddp_model(x), y).backward()
    optimizer.step()
    if done % save_every == 0 and dist.get_rank() == 0:
        snapshot = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        write_snapshot({**snapshot, "steps_run": done}, path)
