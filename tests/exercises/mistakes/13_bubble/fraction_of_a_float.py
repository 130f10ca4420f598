# wrong value: Fraction
# [answer 1]
return Fraction((ranks - 1) / micro_batches)
