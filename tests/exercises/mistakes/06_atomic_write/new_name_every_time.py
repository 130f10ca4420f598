# wrong value: kills and one good save | pile up
import tempfile

descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix="snapshot-")
try:
    with open(descriptor, "wb") as file:
        torch.save(snapshot, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
except BaseException:
    os.unlink(temporary)
    raise
sync_folder(path.parent)
