# wrong value: 3 ranks and 4 micro-batches
# [answer 1]
return Fraction(ranks * 2 * (ranks - 1), 2 * micro_batches)
