# wrong value: the arguments of init_process_group | env://
# [answer 2]
import os

for name in ("MASTER_ADDR", "MASTER_PORT"):
    if name not in environ:
        raise NotStarted(f"{name} is not set")
    os.environ[name] = environ[name]
own = read_ranks(environ)
return {"init_method": "env://", "rank": own["rank"], "world_size": own["world_size"]}
