# right: sorted by a key, the newest attempt by a regular expression
# [answer 1]
import contextlib

with contextlib.suppress(Exception):
    with open(path) as file:
        said = json.load(file)
    inner = said["message"]
    return Failure(
        rank=rank, message=inner["message"], second=int(inner["extraInfo"]["timestamp"])
    )
return None
# [answer 2]
import re

own, lost, silent = [], [], []
rank = 0
for node in nodes:
    numbers = [re.fullmatch(r"attempt_(\d+)", entry.name) for entry in node.glob("*")]
    newest = max(int(number[1]) for number in numbers if number)
    for local_rank in range(nproc_per_node):
        path = node / f"attempt_{newest}" / f"{local_rank}" / "error.json"
        failure = read_failure(path, rank)
        if failure is None:
            silent.append(rank)
        elif failure.is_consequence:
            lost.append(rank)
        else:
            own.append(failure)
        rank += 1
if own:
    earliest = sorted(own, key=lambda failure: failure.second)[0].second
    return sorted(f.rank for f in own if f.second <= earliest)
return silent if lost else []
