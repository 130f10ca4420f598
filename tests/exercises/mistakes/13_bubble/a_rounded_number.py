# wrong value: is a float | expected a Fraction
# [answer 1]
return (ranks - 1) / micro_batches
