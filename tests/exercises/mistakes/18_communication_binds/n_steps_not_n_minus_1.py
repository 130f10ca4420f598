# wrong value: the all-reduce of | bytes on 3 ranks
# [answer 1]
return 2 * ranks * (alpha + beta * size / ranks)
