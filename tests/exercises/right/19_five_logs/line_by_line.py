# right: line by line; the summary by a dict
# [answer 1]
errors = []
for line in log.splitlines():
    match = ERROR.match(line)
    if match and not any(words in match[2] for words in CONSEQUENCES):
        errors.append((int(match[1]), match[2]))
return errors
# [answer 2]
errors = own_errors(log)
if errors:
    rank, message = errors[0]
    for words in CAUSES:
        if words in message:
            return rank, CAUSES[words]
    return rank, "program"
codes = {int(rank): int(code) for rank, code in CODE.findall(log)}
killed = [rank for rank, code in codes.items() if code < 0 and code != -15]
if killed:
    return killed[0], "killed"
return next(r for r in range(ranks) if f"[rank{r}]: " not in log), "absent"
