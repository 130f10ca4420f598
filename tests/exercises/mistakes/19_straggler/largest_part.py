# wrong value: the reason, with
# [answer 3]
parts = {part: typical(times[slow], part) for part in ("data", "compute")}
return max(parts, key=parts.__getitem__)
