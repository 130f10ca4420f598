# hang: deadlock | rank 0: waits in recv | is each partner right
# [answer 1]
rank, ranks = dist.get_rank(), dist.get_world_size()
stage = PipelineStage(layers, ranks - 1 - rank, ranks, torch.device("cpu"))
return Schedule1F1B(stage, n_microbatches=micro_batches, loss_fn=share_of_loss, scale_grads=False)
