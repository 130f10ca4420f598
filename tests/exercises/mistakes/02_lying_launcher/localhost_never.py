# wrong value: MASTER_ADDR=localhost on 1 node(s) | is False, expected True
# [answer 3]
return environ["MASTER_ADDR"] not in ("localhost", "127.0.0.1")
