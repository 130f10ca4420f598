# wrong value: of 12, cut into 5
# [answer 1]
size, longer = divmod(length, parts)
shorter = parts - longer
start = index * size + max(0, index - shorter)
return start, start + size + (index >= shorter)
