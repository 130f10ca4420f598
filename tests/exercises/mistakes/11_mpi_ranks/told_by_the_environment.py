# wrong value: the arguments of init_process_group | env://
# [answer 2]
import os

for name in ("MASTER_ADDR", "MASTER_PORT"):
    if name not in environ:
        raise NotStarted(f"{name} is not set")
    os.environ[name] = environ[name]
mine = numbers(environ)
return {"init_method": "env://", "rank": mine["rank"], "world_size": mine["world_size"]}
