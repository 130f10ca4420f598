# over the limit: 60 layers among 8 devices
# [answer 2]
import itertools
if not 1 <= devices <= len(costs):
    raise ValueError(f"{len(costs)} layers cannot be split among {devices} devices")
best = None
for cuts in itertools.combinations(range(1, len(costs)), devices - 1):
    places = [0, *cuts, len(costs)]
    sizes = [b - a for a, b in zip(places[:-1], places[1:], strict=True)]
    if best is None or slowest(costs, sizes) < slowest(costs, best):
        best = sizes
return best
