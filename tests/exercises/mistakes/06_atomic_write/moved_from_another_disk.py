# wrong value: after a kill at call | was it copied there? | a rename within its folder
import shutil, tempfile
temporary = os.path.join(tempfile.gettempdir(), path.name)
try:
    with open(temporary, "wb") as file:
        torch.save(snapshot, file)
        file.flush()
        os.fsync(file.fileno())
except BaseException:
    os.remove(temporary)
    raise
shutil.move(temporary, path)
sync_folder(path.parent)
