# right: a helper that asks; the exit code as text; a loop for who is absent
# [answer 1]
def own(message):
    for words in CONSEQUENCES:
        if words in message:
            return False
    return True


return [(int(m[1]), m[2]) for m in ERROR.finditer(log) if own(m[2])]
# [answer 2]
mine = own_errors(log)
if mine:
    rank, message = mine[0]
    return rank, next((CAUSES[words] for words in CAUSES if words in message), "program")
for rank, code in CODE.findall(log):
    if code.startswith("-") and code != "-15":
        return int(rank), "killed"
told = [int(rank) for rank, message in ERROR.findall(log)]
for rank in range(ranks):
    if rank not in told:
        return rank, "absent"
