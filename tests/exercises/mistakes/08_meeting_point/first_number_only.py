# wrong value: usable('169.10.3.4/16') | is False, expected True
# [answer 1]
return text.split(".")[0] not in ("127", "169", "0")
