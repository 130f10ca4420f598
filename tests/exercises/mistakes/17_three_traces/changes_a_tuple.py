# exception: does not support item assignment | make a new tuple or a list
# [answer 1]
out = []
for b, e in sorted(found):
    if out and b <= out[-1][1]:
        out[-1][1] = max(out[-1][1], e)
    else:
        out.append((b, e))
return out
