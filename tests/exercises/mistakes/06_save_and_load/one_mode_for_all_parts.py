# wrong value: the mode of each part after saving, 'tanh' | expected 'evaluation'
# [answer 1]
was_training = ddp_model.training
ddp_model.eval()
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
ddp_model.train(was_training)
