# wrong value: cannot be interpreted as an integer | rank 
# [answer 2]
seen = float(steps_run)
while seen < total_steps:
    x, y = data(seen)
    optimizer.zero_grad()
    F.mse_loss(ddp_model(x), y).backward()
    optimizer.step()
    seen += 1
    if seen % save_every == 0 and dist.get_rank() == 0:
        states = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        write_snapshot(states | {"steps_run": seen}, path)
