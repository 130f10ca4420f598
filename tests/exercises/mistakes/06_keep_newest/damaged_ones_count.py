# wrong value: the epochs that can be read | cut off | has 7 items
# [answer 1]
names = [NAME.fullmatch(path.name) for path in folder.iterdir()]
return sorted((int(match[1]) for match in names if match), reverse=True)
