# wrong value: init_method for an IPv6 address | fe80::7%eth0
# [answer 2]
import re

for name in ("MASTER_ADDR", "MASTER_PORT"):
    if name not in environ:
        raise NotStarted(f"{name} is missing")
host, port = environ["MASTER_ADDR"], environ["MASTER_PORT"]
host = f"[{host}]" if re.fullmatch("[0-9a-f:]+:[0-9a-f:]*", host) else host
n = read_ranks(environ)
return {
    "init_method": f"tcp://{host}:{port}",
    "rank": n["rank"],
    "world_size": n["world_size"],
}
