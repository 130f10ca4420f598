# wrong value: bounds are whole numbers
# [answer 1]
size, longer = divmod(length, parts)
start = index * size + min(index, longer)
return float(start), float(start + size + (index < longer))
