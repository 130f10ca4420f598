# wrong value: images_per_s when rank 1 is slow | the sum of the ranks' own images per second
# [answer 2]
t = torch.cat([self.sums, self.sums[1:] / seconds]); dist.all_reduce(t)
l, n, r = t.tolist()
return {"loss": l / n, "images": n, "images_per_s": r}
