# right: plain numbers, gathered as objects
# [answer 1]
if not hasattr(self, "seen"):
    self.total, self.seen = 0.0, 0
self.total += mean_loss.item() * images
self.seen += images
# [answer 2]
mine = getattr(self, "total", 0.0), getattr(self, "seen", 0), seconds
everyone = [None] * dist.get_world_size()
dist.all_gather_object(everyone, mine)
totals, counts, times = zip(*everyone)
images = sum(counts)
return {
    "loss": sum(totals) / images,
    "images": images,
    "images_per_s": images / max(times),
}
