# wrong value: the own errors | has 1 item, expected 3
# [answer 1]
late = {r for r, m in ERROR.findall(log) if any(w in m for w in CONSEQUENCES)}
return [(int(r), m) for r, m in ERROR.findall(log) if r not in late]
