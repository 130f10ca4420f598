# wrong value: the mode of each part after saving | expected 'evaluation'
# [answer 1]
ddp_model.eval()
if dist.get_rank() == 0:
    snapshot = {
        "model": ddp_model.module.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epochs_run": epochs_run,
    }
    torch.save(snapshot, path)
dist.barrier()
ddp_model.train()
