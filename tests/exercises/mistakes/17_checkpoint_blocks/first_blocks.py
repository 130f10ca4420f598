# wrong value: would do: which blocks free most?
# [answer 1]
held = sum(saved)
for number, (whole, less) in enumerate(zip(saved, inputs, strict=True)):
    if held > limit:
        chosen.add(number)
        held -= whole - less
if held > limit:
    raise ValueError(f"{held} bytes are kept, and the limit is {limit}")
