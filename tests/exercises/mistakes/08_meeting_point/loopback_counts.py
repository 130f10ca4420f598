# wrong value: usable('127.0.0.1/8') | not the node itself
# [answer 1]
return text != "0.0.0.0/0" and not text.startswith("169.254.")
