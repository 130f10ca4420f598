# hang: all_reduce | rank 1 | only some ranks reach
# [answer 2]
for batch in batches:
    both = torch.cat([batch.sum(dim=0), torch.tensor([float(len(batch))])])
    dist.all_reduce(both)
    total += both
