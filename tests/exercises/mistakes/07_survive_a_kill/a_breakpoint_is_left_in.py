# wrong value: at the first start | a rank has no keyboard: remove `breakpoint()`
# [answer 1]
if not path.exists():
    return 0
saved = torch.load(path, weights_only=True)
model.load_state_dict(saved["model"])
optimizer.load_state_dict(saved["optimizer"])
return saved["steps_run"]
# [answer 2]
for step in range(steps_run, total_steps):
    breakpoint()
    x, y = data(step)
    optimizer.zero_grad()
    F.mse_loss(ddp_model(x), y).backward()
    optimizer.step()
    if (step + 1) % save_every == 0 and dist.get_rank() == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        write_snapshot(state | {"steps_run": step + 1}, path)
