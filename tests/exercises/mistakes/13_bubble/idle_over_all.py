# wrong value: is idle over all slots
# [answer 1]
return Fraction(ranks - 1, micro_batches + ranks - 1)
