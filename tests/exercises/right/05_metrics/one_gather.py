# right: one all_gather in place of two reductions
# [answer 1]
with torch.no_grad():
    self.sums[0] += mean_loss * images
    self.sums[1] += images
# [answer 2]
mine = torch.tensor([*self.sums.tolist(), seconds], dtype=torch.float64)
everyone = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
dist.all_gather(everyone, mine)
table = torch.stack(everyone)
loss_sum, images = table[:, :2].sum(dim=0).tolist()
return {
    "images_per_s": images / table[:, 2].max().item(),
    "images": images,
    "loss": loss_sum / images,
}
