# wrong value: the epochs that can be read
# [answer 1]
import zipfile

names = [NAME.fullmatch(path.name) for path in folder.iterdir()]
epochs = sorted((int(match[1]) for match in names if match), reverse=True)
return [e for e in epochs if zipfile.is_zipfile(folder / f"snapshot_{e}.pt")]
