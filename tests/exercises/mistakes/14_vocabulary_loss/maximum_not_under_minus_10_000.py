# wrong value: the largest scores, if all are negative
# [answer 1]
largest = torch.full((len(scores),), -1e4, dtype=scores.dtype)
if scores.shape[1]:
    largest = torch.maximum(largest, scores.max(1).values)
dist.all_reduce(largest, op=dist.ReduceOp.MAX)
return largest
