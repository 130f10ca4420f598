# wrong value: the steps of rank 1, 12 of 14 being saved | has 5 items
# [answer 1]
found = sorted(path.parent.glob(f"{path.stem}_*.pt"))
if not found:
    return 0
snapshot = torch.load(found[-1], map_location="cpu", weights_only=True)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
return snapshot["steps_run"]
# [answer 2]
for step in range(steps_run, total_steps):
    x, y = data(step)
    optimizer.zero_grad()
    F.mse_loss(ddp_model(x), y).backward()
    optimizer.step()
    if (step + 1) % save_every == 0 and dist.get_rank() == 0:
        snapshot = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "steps_run": step + 1,
        }
        write_snapshot(snapshot, path.with_name(f"{path.stem}_{step + 1}.pt"))
