# wrong value: the sizes for 7 in groups of 3
# [answer 1]
return total % accumulate or accumulate
