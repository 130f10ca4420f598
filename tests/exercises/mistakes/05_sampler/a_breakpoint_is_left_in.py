# exception: starts a debugger | a rank has no keyboard | remove any `breakpoint()`
# [answer 2]
missing = -len(indices) % world_size
padded = indices + (indices * missing)[:missing]
breakpoint()
return padded
