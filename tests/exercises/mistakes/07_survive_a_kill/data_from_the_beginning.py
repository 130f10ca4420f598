# wrong value: after a kill, rank 0 never asked for data(8)
# [answer 2]
for step in range(total_steps - steps_run):
    x, y = data(step)
    optimizer.zero_grad()
    F.mse_loss(ddp_model(x), y).backward()
    optimizer.step()
    done = steps_run + step + 1
    if done % save_every == 0 and dist.get_rank() == 0:
        snapshot = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        write_snapshot({**snapshot, "steps_run": done}, path)
