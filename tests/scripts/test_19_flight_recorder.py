"""19_flight_recorder.py: what the ranks of a failed program had called."""

import pickle
import re
import subprocess
import sys

import pytest

from tests.scripts.trainings import SRC, script, sentence, torchrun

PROGRAM = SRC / "instruments/19_flight_recorder.py"
ANALYZER = "torch.distributed.flight_recorder.fr_trace"
# All ranks agree in the world's group; in the second one, rank 1 calls something else.
FAILS = """
import sys, torch, torch.distributed as dist
print(f"{sys.argv[1:]} {__name__}\\n", end="", flush=True)  # in one piece
dist.init_process_group("gloo")
rank = dist.get_rank()
dist.new_group([0])
pair = dist.new_group([0, 1])
dist.all_reduce(torch.ones(2))
if rank == 0:
    dist.send(torch.ones(3), 1)
else:
    dist.recv(torch.ones(3), 0)
dist.barrier()
if rank == 0:
    dist.all_reduce(torch.ones(4), group=pair, async_op=True)
else:
    dist.broadcast(torch.ones(4), 0, group=pair, async_op=True)
raise SystemExit(3)
"""


def record_of(folder, rank):
    return pickle.loads((folder / f"recorder_{rank}").read_bytes())


@pytest.mark.full
def test_analyzer_names_the_first_difference_in_the_group_where_it_is(tmp_path):
    (tmp_path / "fails.py").write_text(FAILS)
    done = torchrun(tmp_path, 2, PROGRAM, "fails.py", "--epochs", "5")
    assert done.returncode == 1 and "exitcode  : 3" in done.stderr, done.stderr
    assert done.stdout.count("['--epochs', '5'] __main__\n") == 2
    command = [sys.executable, "-m", ANALYZER, "--prefix", "recorder_", tmp_path]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert told.returncode == 0, told.stderr
    said = told.stderr
    differ = re.search(r"type: '(\w+)' does not match found .*type: '(\w+)'", said)
    assert differ and {*differ.groups()} == {"all_reduce", "broadcast"}, said
    assert re.findall(r"fails\.py:(\d+)", said)[-1:] in (["15"], ["17"]), said


@pytest.mark.full
def test_record_holds_collectives_with_lines_but_no_send(tmp_path):
    (tmp_path / "fails.py").write_text(FAILS)
    torchrun(tmp_path, 2, PROGRAM, "fails.py")
    for rank, last in enumerate(["all_reduce", "broadcast"]):
        record = record_of(tmp_path, rank)
        calls = [entry["profiling_name"] for entry in record["entries"]]
        assert calls == ["gloo:all_reduce", "gloo:barrier", f"gloo:{last}"]
        assert record["entries"][0]["input_sizes"] == [[2]]
        ranks = [group["ranks"] for group in record["pg_config"].values()]
        assert ranks == ["[0, 1]", "[0, 1]"]


@pytest.mark.full
def test_program_that_ends_well_leaves_no_record(tmp_path):
    (tmp_path / "ends.py").write_text("print('well')\n")
    done = torchrun(tmp_path, 1, PROGRAM, "ends.py")
    assert done.returncode == 0 and done.stdout == "well\n", done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["ends.py"]


@pytest.mark.parametrize(("words", "named"), [(["no.py"], "no.py"), ([], "PROGRAM")])
def test_bad_input_is_one_sentence(tmp_path, words, named):
    assert named in sentence(script(tmp_path, PROGRAM.name, *words))
