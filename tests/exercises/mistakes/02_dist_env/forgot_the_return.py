# wrong value: get_dist_env returned None | `return`
# [answer 2]
launcher = find_launcher(environ)
DistEnv(launcher, 0, 0, 1)
