# wrong value: usable('10.1.0.11/16') | is False, expected True
# [answer 1]
return not ipaddress.ip_interface(text).ip.is_private
