# wrong value: refuse_lies | must name
# [answer 2]
if contradictions(environ):
    raise LyingLauncher("the environment contradicts itself")
