# wrong way: make_schedule was asked for 6
# [answer 1]
rank, ranks = dist.get_rank(), dist.get_world_size()
stage = PipelineStage(layers, rank, ranks, torch.device("cpu"))
return Schedule1F1B(stage, n_microbatches=ranks, loss_fn=share_of_loss, scale_grads=False)
