# wrong value: half of it, the reduce-scatter alone
# [answer 1]
return (ranks - 1) * (alpha + beta * size / ranks)
