# wrong value: the model after saving
# [answer 1]
optimizer.step()
if dist.get_rank() == 0:
    torch.save(
        {
            "model": ddp_model.module.state_dict(),
            "optimizer": optimizer.state_dict(),
            "epochs_run": epochs_run,
        },
        path,
    )
dist.barrier()
