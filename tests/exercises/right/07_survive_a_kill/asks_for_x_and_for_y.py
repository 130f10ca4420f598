# right: asks twice for the batch of a step, which is the same every time
# [answer 2]
for step in range(steps_run, total_steps):
    optimizer.zero_grad()
    F.mse_loss(ddp_model(data(step)[0]), data(step)[1]).backward()
    optimizer.step()
    steps_run = step + 1
    if steps_run % save_every == 0 and dist.get_rank() == 0:
        states = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        write_snapshot(states | {"steps_run": steps_run}, path)
