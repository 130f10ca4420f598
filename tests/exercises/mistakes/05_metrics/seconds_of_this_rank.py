# wrong value: images_per_s when rank 1 is slow | divided by the seconds of this rank
# [answer 2]
t = self.sums.clone(); dist.all_reduce(t)
l, n = t.tolist()
return {"loss": l / n, "images": n, "images_per_s": n / seconds}
