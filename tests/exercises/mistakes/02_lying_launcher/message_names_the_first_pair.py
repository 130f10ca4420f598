# wrong value: refuse_lies | must name WORLD_SIZE=2
# [answer 2]
for left, right in contradictions(environ):
    raise LyingLauncher(f"{left}={environ[left]} contradicts {right}={environ[right]}")
