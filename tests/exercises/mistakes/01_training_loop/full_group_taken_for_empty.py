# wrong value: the sizes for 6 in groups of 3
# [answer 1]
last_group = (total - 1) // accumulate
if index // accumulate == last_group:
    return total % accumulate
return accumulate
