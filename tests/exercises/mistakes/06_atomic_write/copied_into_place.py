# wrong value: after a kill | lost
import shutil

temporary = path.with_name(path.name + ".tmp")
try:
    with open(temporary, "wb") as file:
        torch.save(snapshot, file)
        file.flush()
        os.fsync(file.fileno())
    shutil.copyfile(temporary, path)
finally:
    temporary.unlink(missing_ok=True)
sync_folder(path.parent)
