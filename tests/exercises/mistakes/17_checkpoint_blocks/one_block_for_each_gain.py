# exception: valueerror: more than the limit
# [answer 1]
gains = {whole - less: k for k, (whole, less) in enumerate(zip(saved, inputs))}
held = sum(saved)
for gain in sorted(gains, reverse=True):
    if held <= limit:
        break
    chosen.add(gains[gain])
    held -= gain
if held > limit:
    raise ValueError("more than the limit, with every block checkpointed")
