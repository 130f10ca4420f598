# wrong value: the keys of the saved model | is 'head.weight', expected 'head.module.weight'
# [answer 1]
if dist.get_rank() == 0:
    state = ddp_model.state_dict()
    snapshot = {
        "model": {key.replace("module.", ""): value for key, value in state.items()},
        "optimizer": optimizer.state_dict(),
        "epochs_run": epochs_run,
    }
    torch.save(snapshot, path)
dist.barrier()
