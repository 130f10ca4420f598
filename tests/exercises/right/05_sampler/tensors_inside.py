# right: tensors until the end
# [answer 1]
generator = torch.Generator()
generator.manual_seed(seed + epoch)
order = torch.randperm(size, generator=generator)
return list(map(int, order))
# [answer 2]
total = (len(indices) + world_size - 1) // world_size * world_size
return [indices[place % len(indices)] for place in range(total)]
# [answer 3]
padded = torch.tensor(pad(epoch_order(size, seed, epoch, shuffle), world_size))
return padded.view(-1, world_size)[:, rank].tolist()
