# wrong value: the steps that typical was given | has 4 items, expected 5
# [answer 1]
steps.pop(0)
return median(s[part] for s in steps)
