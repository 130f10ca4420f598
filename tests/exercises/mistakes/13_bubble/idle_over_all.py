# wrong value: 3 ranks and 4 micro-batches, 1/3, is idle over all slots
# [answer 1]
return Fraction(ranks - 1, micro_batches + ranks - 1)
