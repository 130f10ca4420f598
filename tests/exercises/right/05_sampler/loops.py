# right: loops and the rest of a division
# [answer 1]
generator = torch.Generator()
generator.manual_seed(epoch + seed)
return [int(i) for i in torch.randperm(size, generator=generator)]
# [answer 2]
padded = list(indices)
while len(padded) % world_size != 0:
    padded.append(padded[len(padded) - len(indices)])
return padded
# [answer 3]
padded = pad(epoch_order(size, seed, epoch, shuffle), world_size)
return [index for place, index in enumerate(padded) if place % world_size == rank]
