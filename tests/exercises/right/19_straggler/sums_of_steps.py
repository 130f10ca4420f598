# right: quantiles of tensors; a step is the sum of its parts, and then typical
# [answer 1]
import torch

seconds = [step[part] for step in steps[1:]]
return torch.tensor(seconds, dtype=torch.float64).quantile(0.5).item()
# [answer 2]
order = sorted(range(len(times)), key=lambda rank: typical(times[rank], "waiting"))
slow, rest = order[0], order[1:]
own = typical(times[slow], "waiting")
step = median([sum(step.values()) for step in times[slow][1:]])
if median([typical(times[rank], "waiting") for rank in rest]) - own > 0.1 * step:
    return slow
# [answer 3]
others = [steps for rank, steps in enumerate(times) if rank != slow]
data = typical(times[slow], "data") - median(typical(s, "data") for s in others)
compute = typical(times[slow], "compute")
compute -= median(typical(s, "compute") for s in others)
return "data" if data > compute else "compute"
