# wrong way: your code read a file that it doesn't need
# [answer 3]
for rank, theirs in saved.items():
    starts = [max(a, c) for (a, _), (c, _) in zip(own, theirs)]
    stops = [max(max(a, c), min(b, d)) for (a, b), (c, d) in zip(own, theirs)]
    from_box, to_box = (
        tuple(slice(a - s, b - s) for a, b, (s, _) in zip(starts, stops, box))
        for box in (theirs, own)
    )
    if all(a <= d for a, (_, d) in zip(starts, theirs)):
        piece = read(rank, from_box)
        if piece.numel():
            shard[to_box] = piece
