# hang: barrier | rank 0 | only some ranks reach
# [answer 1]
if dist.get_rank() == 0:
    snapshot = {
        "model": ddp_model.module.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epochs_run": epochs_run,
    }
    torch.save(snapshot, path)
    dist.barrier()
