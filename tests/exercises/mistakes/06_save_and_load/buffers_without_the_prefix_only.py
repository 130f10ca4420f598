# wrong value: the keys of the saved model
# [answer 1]
if dist.get_rank() == 0:
    state = {
        key[len("module.") :] if key.endswith(("weight", "bias")) else key: value
        for key, value in ddp_model.state_dict().items()
    }
    torch.save(
        {"model": state, "optimizer": optimizer.state_dict(), "epochs_run": epochs_run},
        path,
    )
dist.barrier()
