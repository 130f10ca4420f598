# wrong value: the bubble of 2 ranks and 1 micro-batches
# [answer 1]
return Fraction(ranks - 1, 2 * micro_batches)
