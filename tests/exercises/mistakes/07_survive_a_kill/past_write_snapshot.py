# wrong value: write_snapshot was called on no rank
# [answer 2]
for step in range(steps_run, total_steps):
    x, y = data(step)
    optimizer.zero_grad()
    F.mse_loss(ddp_model(x), y).backward()
    optimizer.step()
    if (step + 1) % save_every == 0 and dist.get_rank() == 0:
        torch.save(
            {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "steps_run": step + 1,
            },
            path,
        )
