# wrong value: (rank, cause)
# [answer 2]
errors = own_errors(log)
if errors:
    rank, message = errors[-1]
    return rank, next((CAUSES[w] for w in CAUSES if w in message), "program")
for rank, code in CODE.findall(log):
    if int(code) < 0 and int(code) != -15:
        return int(rank), "killed"
waited = {int(rank) for rank, _ in ERROR.findall(log)}
return min(set(range(ranks)) - waited), "absent"
