# exception, torch>=2.10: Expecting 4 losses but got 0
# [answer 1]
rank, ranks = dist.get_rank(), dist.get_world_size()
stage = PipelineStage(layers, rank, ranks, torch.device("cpu"))
return Schedule1F1B(stage, n_microbatches=micro_batches, scale_grads=False)
