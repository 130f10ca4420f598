# wrong value: the own errors
# [answer 1]
found = ERROR.findall(log)
return [f for f in found if not any(words in f[1] for words in CONSEQUENCES)]
