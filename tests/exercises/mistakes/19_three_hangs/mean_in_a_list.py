# wrong value: mean_of_batches | returned list of float, expected tensor
# [answer 2]
for batch in batches:
    total += torch.cat([batch.sum(dim=0), torch.tensor([float(len(batch))])])
dist.all_reduce(total)
return (total[:3] / total[3]).tolist()
