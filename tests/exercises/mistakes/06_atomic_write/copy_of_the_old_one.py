# wrong value: after a kill at call | the old snapshot is lost
import shutil

if path.exists():
    shutil.copyfile(path, path.with_name(path.name + ".bak"))
with open(path, "wb") as file:
    torch.save(snapshot, file)
    file.flush()
    os.fsync(file.fileno())
path.with_name(path.name + ".bak").unlink(missing_ok=True)
sync_folder(path.parent)
