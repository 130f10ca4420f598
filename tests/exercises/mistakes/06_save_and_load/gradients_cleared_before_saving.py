# wrong value: the gradients after saving | lacks ['embed.weight'
# [answer 1]
optimizer.zero_grad()
if dist.get_rank() == 0:
    snapshot = {
        "model": ddp_model.module.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epochs_run": epochs_run,
    }
    torch.save(snapshot, path)
dist.barrier()
