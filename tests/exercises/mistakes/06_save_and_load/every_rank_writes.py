# wrong value: ranks [0, 1, 2] all wrote the same file
# [answer 1]
snapshot = {
    "model": ddp_model.module.state_dict(),
    "optimizer": optimizer.state_dict(),
    "epochs_run": epochs_run,
}
torch.save(snapshot, path)
dist.barrier()
