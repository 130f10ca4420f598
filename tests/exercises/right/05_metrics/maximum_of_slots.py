# right: one reduction of a table with a row for each rank
# [answer 1]
self.sums = self.sums + torch.tensor(
    [float(mean_loss) * images, images], dtype=torch.float64
)
# [answer 2]
table = torch.zeros(dist.get_world_size(), 3, dtype=torch.float64)
table[dist.get_rank()] = torch.tensor([*self.sums, seconds])
dist.all_reduce(table)
loss, images, _ = table.sum(dim=0).tolist()
slowest = max(table[:, 2].tolist())
return dict(loss=loss / images, images=int(images), images_per_s=images / slowest)
