# wrong value: the shard of
# [answer 3]
shard.fill_(7)  # not what the memory happens to hold
for rank, theirs in saved.items():
    common = overlap(own, theirs)
    if common:
        piece = read(
            rank, tuple(slice(a - s, b - s) for (a, b), (s, _) in zip(common, theirs))
        )
        shard[: piece.shape[0], : piece.shape[1]] = piece
