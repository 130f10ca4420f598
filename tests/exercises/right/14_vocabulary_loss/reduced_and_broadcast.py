# right: the targets' scores by reduce and broadcast
# [answer 2]
import numpy as np
one_hot = torch.from_numpy(np.equal.outer(place.numpy(), np.arange(scores.shape[1]))).to(scores.dtype)
wanted = (scores * one_hot).sum(1)
dist.reduce(wanted, 0)
dist.broadcast(wanted, 0)
return wanted
# [answer 3]
return chances.scatter_add(1, place.clamp(0, chances.shape[1] - 1)[:, None], -is_local.to(chances.dtype)[:, None]) * gradient[:, None], None, None
