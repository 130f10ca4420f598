# wrong value: refuses the file | weights_only=True
# [answer 1]
if dist.get_rank() == 0:
    snapshot = {
        "model": ddp_model.module.state_dict(),
        "optimizer": optimizer,
        "epochs_run": epochs_run,
    }
    torch.save(snapshot, path)
dist.barrier()
