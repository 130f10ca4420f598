# wrong value: beside four other files | has 4 items, expected 2
# [answer 1]
import re

found = []
for path in folder.iterdir():
    number = re.search(r"snapshot_(\d+)", path.name)
    if number and read_snapshot(path) is not None:
        found.append(int(number[1]))
return sorted(found, reverse=True)
