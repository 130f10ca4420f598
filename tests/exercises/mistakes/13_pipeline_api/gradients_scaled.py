# wrong value: the gradient of | 1/4 of it: scale_grads is on
# [answer 1]
rank, ranks = dist.get_rank(), dist.get_world_size()
stage = PipelineStage(layers, rank, ranks, torch.device("cpu"))
return Schedule1F1B(stage, n_microbatches=micro_batches, loss_fn=share_of_loss)
