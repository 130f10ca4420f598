# wrong value: usable('0.0.0.0/0')
# [answer 1]
address = ipaddress.ip_interface(text).ip
return not (address.is_loopback or address.is_link_local)
