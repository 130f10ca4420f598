# wrong value: would do: which blocks free most?
# [answer 1]
chosen = set(range(len(saved)))
if sum(inputs) > limit:
    raise ValueError(f"{sum(inputs)} bytes are kept, and the limit is {limit}")
