# wrong value: got no gradient
# [answer 1]
rank, ranks = dist.get_rank(), dist.get_world_size()
import copy
stage = PipelineStage(copy.deepcopy(layers), rank, ranks, torch.device("cpu"))
return Schedule1F1B(stage, n_microbatches=micro_batches, loss_fn=share_of_loss, scale_grads=False)
