# wrong value: beside four other files and a folder
# [answer 1]
found = []
for path in folder.rglob("snapshot_*.pt"):
    match = NAME.fullmatch(path.name)
    if match and read_snapshot(path) is not None:
        found.append(int(match[1]))
return sorted(found, reverse=True)
