# right: a helper that shifts a box, pieces collected first
# [answer 3]
def within(part, box):
    return tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(part, box))


needed = {rank: overlap(own, theirs) for rank, theirs in saved.items()}
pieces = {
    rank: read(rank, within(common, saved[rank]))
    for rank, common in needed.items()
    if common is not None
}
for rank, piece in pieces.items():
    shard[within(needed[rank], own)].copy_(piece)
