# right, torch>=2.10: shutil.move, which renames within one folder
import shutil

temporary = path.with_name("unfinished_" + path.name)
try:
    torch.save(snapshot, temporary)
    with open(temporary, "r+b") as file:
        os.fsync(file.fileno())
    shutil.move(str(temporary), str(path))
except Exception as error:
    temporary.unlink(missing_ok=True)
    raise RuntimeError(f"{path} was not saved") from error
sync_folder(path.parent)
