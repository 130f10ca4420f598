# wrong value: the keys of the saved model | module.embed.weight
# [answer 1]
if dist.get_rank() == 0:
    snapshot = {
        "model": ddp_model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epochs_run": epochs_run,
    }
    torch.save(snapshot, path)
dist.barrier()
