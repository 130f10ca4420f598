# wrong value: clipped to | the norm of this layer alone
# [answer 2]
total = torch.zeros((), dtype=gradients[0].dtype)
clipped = []
for shard in shards:
    squares = shard.square().sum()
    dist.all_reduce(squares)
    total += squares
    clipped.append(shard * (max_norm / (squares.sqrt() + 1e-6)).clamp(max=1))
norm, shards = total.sqrt(), clipped
