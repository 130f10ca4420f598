# wrong value: rank for | os.environ | read `environ`
# [answer 2]
launcher = find_launcher(environ)
import os

if launcher == "python":
    return DistEnv(launcher, 0, 0, 1)
return DistEnv(
    launcher,
    int(os.environ["RANK"]),
    int(os.environ["LOCAL_RANK"]),
    int(os.environ["WORLD_SIZE"]),
)
