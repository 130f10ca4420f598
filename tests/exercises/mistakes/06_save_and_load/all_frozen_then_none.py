# wrong value: requires_grad after saving, 'head.module.bias'
# [answer 1]
ddp_model.requires_grad_(False)
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
ddp_model.requires_grad_(True)
