# wrong value: refuse_lies | must raise LyingLauncher
# [answer 2]
lies = [f"{a}={environ[a]}, {b}={environ[b]}" for a, b in contradictions(environ)]
if lies:
    LyingLauncher("; ".join(lies))
