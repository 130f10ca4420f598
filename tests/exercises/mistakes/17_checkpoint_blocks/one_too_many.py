# wrong value: would do: which blocks free most?
# [answer 1]
held = sum(saved)
gains = [whole - less for whole, less in zip(saved, inputs, strict=True)]
for number in sorted(range(len(saved)), key=gains.__getitem__, reverse=True):
    if held >= limit:
        chosen.add(number)
        held -= gains[number]
if held > limit:
    raise ValueError(f"{held} bytes are kept, and the limit is {limit}")
