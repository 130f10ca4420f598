# right: two halves of the ring; the smallest of a list
# [answer 1]
half = (ranks - 1) * alpha + beta * (size - size / ranks)
return half + half
# [answer 2]
return per_sequence * batch / ranks * (1 - 1 / 3)
# [answer 3]
fits = [n for n in range(1, batch + 1) if batch % n == 0]
given = size, alpha, beta
return next(
    (
        n
        for n in fits
        if backward_seconds(n, batch, per_sequence) < all_reduce_seconds(n, *given)
    ),
    None,
)
