# wrong value: loss | is a Tensor, expected a number
# [answer 2]
sums = self.sums.clone()
slowest = torch.tensor(seconds, dtype=torch.float64)
dist.all_reduce(sums)
dist.all_reduce(slowest, dist.ReduceOp.MAX)
return {"loss": sums[0] / sums[1], "images": sums[1], "images_per_s": sums[1] / slowest}
