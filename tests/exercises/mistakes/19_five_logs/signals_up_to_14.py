# wrong value: rank 0 has exit code -24 | is 'absent', expected 'killed'
# [answer 2]
for rank, message in own_errors(log):
    return rank, next((c for w, c in CAUSES.items() if w in message), "program")
for rank, code in CODE.findall(log):
    if -15 < int(code) < 0:
        return int(rank), "killed"
seen = {int(rank) for rank, _ in ERROR.findall(log)}
return min(set(range(ranks)) - seen), "absent"
