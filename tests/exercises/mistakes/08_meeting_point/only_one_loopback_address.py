# wrong value: usable('127.0.1.1/8')
# [answer 1]
address = ipaddress.ip_interface(text).ip
return not (text == "127.0.0.1/8" or address.is_link_local or address.is_unspecified)
