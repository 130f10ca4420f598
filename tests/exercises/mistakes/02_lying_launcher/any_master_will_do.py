# wrong value: MASTER_ADDR=localhost on 2 node(s) | is True, expected False
# [answer 3]
return bool(environ["MASTER_ADDR"])
