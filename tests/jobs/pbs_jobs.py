"""What tests submit to PBS: the job scripts, and programs for them to start."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# the capstone asks for four hosts: tests/jobs/test_20_capstone.py has them
SCRIPTS = {path.name for path in (ROOT / "job_scripts").glob("*.pbs")}
SCRIPTS = sorted(SCRIPTS - {"capstone.pbs"})
LAUNCHERS = {  # how ranks are started on many hosts, and what is trained then
    "torchrun": "08_multinode_torchrun",
    "ssh": "08_multinode_torchrun",
    "mpirun": "09_srun",
}
LIMIT = 300  # seconds for a job that trains; it takes 10 where nothing else runs

# Says where it runs, then is the training.
SAYS_HOST = """\
import os, runpy, socket, sys
sys.path.insert(0, "src")
rank = os.environ.get("RANK") or os.environ["OMPI_COMM_WORLD_RANK"]
sys.stdout.write(f"rank {rank} is on {socket.gethostname()}\\n")
runpy.run_path("src/NAME.py", run_name="__main__")
"""
# A rank that fails, while the others would stay forever.
FAILS = """\
import os, sys, time
if (os.environ.get("RANK") or os.environ.get("OMPI_COMM_WORLD_RANK", "1")) == "1":
    print("this rank fails", flush=True)
    sys.exit(7)
time.sleep(1000)
"""
