# wrong way: not synced after the rename: what was synced is a file | pass its folder, path.parent
temporary = path.with_name(path.name + ".tmp")
try:
    with open(temporary, "wb") as file:
        torch.save(snapshot, file)
        file.flush()
        os.fsync(file.fileno())
except BaseException:
    temporary.unlink()
    raise
os.replace(temporary, path)
sync_folder(path)
