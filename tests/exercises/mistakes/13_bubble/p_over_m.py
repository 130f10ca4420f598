# wrong value: the bubble of 1 ranks and 1 micro-batches | expected Fraction(0, 1)
# [answer 1]
return Fraction(ranks, micro_batches)
