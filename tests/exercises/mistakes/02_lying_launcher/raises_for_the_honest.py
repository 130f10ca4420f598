# exception: LyingLauncher | nothing is wrong
# [answer 2]
lies = [
    f"{a}={environ[a]} contradicts {b}={environ[b]}"
    for a, b in contradictions(environ)
]
raise LyingLauncher("; ".join(lies))
