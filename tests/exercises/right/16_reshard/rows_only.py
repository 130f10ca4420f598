# right: one slice is enough where all columns are needed
# [answer 3]
for rank, theirs in saved.items():
    both = overlap(theirs, own)
    if not both:
        continue
    (top, bottom), (left, right) = both
    (t, _), (l, r) = theirs
    rows, columns = slice(top - t, bottom - t), slice(left - l, right - l)
    part = read(rank, (rows,) if (left, right) == (l, r) else (rows, columns))
    t, l = own[0][0], own[1][0]
    shard[top - t : bottom - t, left - l : right - l].copy_(part)
