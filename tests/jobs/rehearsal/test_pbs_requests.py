"""What qsub accepts and which host gets what, as OpenPBS 23.06 was seen to behave."""

from pathlib import Path

import pytest

from tests.docs.pages import lesson_source
from workshop.cluster.pbs import Job
from workshop.cluster.pbs.placement import Amount, Refused, fit, why_not
from workshop.cluster.pbs.request import read_request

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[3]


def asked(*options, script="true\n", gpus=True, environ=None):
    return read_request(list(options), Path(), environ or {}, lambda: script, gpus)


def hosts_of(request, hosts=3):
    """Each host: ncpus=8, ngpus=4, mem=16gb."""
    capacity = {f"node0{k + 1}": Amount(8, 4, 16 * 1024) for k in range(hosts)}
    return fit(request.chunks, request.place, capacity), capacity


PLACED = [
    # request, lines of the node file, OMP_NUM_THREADS
    ("-lselect=2:ncpus=2:ngpus=2:mem=1gb -lplace=scatter", "1 2", 2),
    ("-lselect=2:ncpus=2:ngpus=2:mpiprocs=1 -lplace=scatter", "1 2", 2),
    ("-lselect=2:ncpus=2:ngpus=2:mpiprocs=2 -lplace=scatter", "1 1 2 2", 2),
    ("-lselect=2:ncpus=4:mpiprocs=2:ompthreads=3 -lplace=scatter", "1 1 2 2", 3),
    ("-lselect=2:ncpus=2:ngpus=2", "1 1", 2),
    ("-lncpus=4 -lngpus=4 -lmem=10GB", "1", 4),
    ("-lnodes=2:ppn=2", "1 1 2 2", 2),
    ("-lselect=1:host=node03+1:host=node02:mpiprocs=2", "3 2 2", 1),
    ("-lselect=2:ncpus=2 -lplace=scatter:excl", "1 2", 2),
    ("-lselect=2:ncpus=2 -lplace=excl", "1 1", 2),
]


@pytest.mark.parametrize(("options", "lines", "threads"), PLACED)
def test_chunks_go_where_place_says(options, lines, threads):
    """Without place=scatter, two chunks may share a host; the job-wide form is one
    chunk; Torque's nodes=2:ppn=2 becomes select=2:ncpus=2:mpiprocs=2, scatter."""
    request = asked(*options.split())
    hosts, _ = hosts_of(request)
    job = Job(1, request, Path(), {}, hosts=hosts)
    assert job.nodefile.split() == [f"node0{k}" for k in lines.split()]
    assert request.chunks[0].ompthreads == threads


def test_job_wide_request_becomes_one_packed_chunk():
    """`ncpus=4 -l ngpus=4 -l mem=10GB` becomes select=1:..., place=pack."""
    shown = asked("-lncpus=4", "-lngpus=4", "-lmem=10GB").shown_resources()
    assert shown == {"select": "1:ncpus=4:ngpus=4:mem=10GB", "place": "pack"}


SHORT_OF_CORES = "Not Running: Insufficient amount of resource: ncpus"
TOO_FEW_HOSTS = "Can Never Run: Not enough total nodes available"


@pytest.mark.parametrize(
    ("options", "comment"),
    [
        ("-lncpus=16 -lngpus=8", SHORT_OF_CORES),
        ("-lselect=4 -lplace=scatter", TOO_FEW_HOSTS),
        ("-lselect=1:ncpus=1:host=n9", SHORT_OF_CORES),
    ],
)
def test_impossible_request_stays_in_the_queue(options, comment):
    """More than one node in the job-wide form, or more chunks than hosts: queued."""
    request = asked(*options.split())
    found, capacity = hosts_of(request)
    assert found is None
    assert why_not(request.chunks, request.place, capacity) == comment


CONFLICT = '"-lresource=" cannot be used with "select" or "place", resource is: '
ILLEGAL = "Illegal attribute or resource value Resource_List"
REFUSED = [
    ("-lnodes=2:ppn=2:gpus=2", "node(s) specification error", 1),
    ("-lselect=2 -lncpus=2", f"{CONFLICT}ncpus", 5),
    ("-lselect=2 -lngpus=2", f"{CONFLICT}ngpus", 5),
    ("-lselect=2 -lnodes=2", "Cannot be used with select or place: nodes", 6),
    ("-lplace=pack -lnodes=2", "Cannot be used with select or place: nodes", 6),
    ("-lstorage=scratch/ab12", "Unknown resource Resource_List.storage", 187),
    ("-lwd", "Unknown resource Resource_List.wd", 187),
    ("-ljobfs=10GB", "Unknown resource Resource_List.jobfs", 187),
    ("-lselect=1:ncpus=two", f"{ILLEGAL}.ncpus", 166),
    ("-lwalltime=long", f"{ILLEGAL}.walltime", 166),
    ("-qgpu", "Unknown queue", 170),
]


@pytest.mark.parametrize(("options", "words", "status"), REFUSED)
def test_refusals_use_the_words_of_pbs(options, words, status):
    """Forms of Torque and of one site are refused; a select forbids -l ncpus=."""
    with pytest.raises(Refused) as refused:
        asked(*options.split())
    assert (str(refused.value), refused.value.status) == (words, status)


def test_place_may_say_who_shares_a_host():
    """place=scatter:excl; other words are refused."""
    assert asked("-lplace=scatter:excl").whole
    assert not asked("-lplace=scatter:shared").whole
    with pytest.raises(Refused, match="place="):
        asked("-lplace=scatter:mine")


def test_page_says_what_was_seen():
    """What the tests of this file hold the rehearsal to."""
    page = " ".join(lesson_source("10_pbs").split())
    shown = [words for options, words, _ in REFUSED if "=2 -l" in options]
    for words in (shown[0], "Cannot be used with select or place: nodes"):
        assert f"``{words}``" in page
    for sentence in (
        "The umask of a job is 0077",  # test_nobody_else_reads_what_a_job_writes
        "it is a number such as ``40000001``",  # test_tasks_of_pbsdsh_have_...
        "it refuses ``n2`` with 255",  # test_hosts_may_have_full_names
        "in the script ``PBS_NODENUM`` is always 0",  # test_variables_of_a_job
        "``nodes=2:ppn=2`` (Torque), without ``select``",
        "Each new shell continues to count jobs",  # ..._from_the_command_line
    ):
        assert sentence in page, sentence
    setup = (ROOT / "docs" / "setup.rst").read_text()
    interactive = setup.split("$ qsub -I ")[1].splitlines()[1]
    assert 'cd "$PBS_O_WORKDIR"' in interactive, "it opens in the home folder"


def test_select_of_the_script_forbids_ncpus_on_the_command_line():
    """`select=..` with `-l ncpus=` is refused, wherever each is written."""
    with pytest.raises(Refused, match="cannot be used"):
        asked("-lncpus=96", script="#PBS -l select=2\ntrue\n")


def test_gpus_are_a_resource_that_a_server_may_not_have():
    """`ngpus` had to be created; what was not is an unknown resource."""
    with pytest.raises(Refused, match=r"Unknown resource Resource_List\.ngpus"):
        asked("-lselect=1:ngpus=1", gpus=False)


def test_windows_line_ends_are_refused():
    """CRLF line ends are refused ("script contains cr, lf")."""
    with pytest.raises(Refused, match="script contains cr, lf"):
        asked(script="#!/bin/bash\r\ntrue\r\n")


def test_comment_behind_a_directive_is_refused():
    """A comment after a directive is refused ("directive error")."""
    with pytest.raises(Refused, match="directive error"):
        asked(script="#PBS -N train # the name\ntrue\n")


def test_directive_after_the_first_command_is_ignored():
    """Directives after the first command are silently ignored."""
    script = "#!/bin/bash\n\n# a comment\n#PBS -N a\ncd /\n#PBS -l walltime=60\n"
    request = asked(script=script)
    assert request.name == "a"
    assert request.walltime is None


def test_several_options_stand_on_one_line():
    """Several options on one #PBS line work."""
    request = asked(script="#PBS -N a -j oe -l walltime=01:30:00\ntrue\n")
    assert (request.name, request.join, request.walltime) == ("a", "oe", 5400)


def test_name_with_a_space_is_refused():
    """-N "a b" is refused."""
    with pytest.raises(Refused):
        asked(script='#PBS -N "a b"\ntrue\n')


def test_command_line_wins_over_the_script():
    """An option of qsub replaces the directive."""
    request = asked("-Nmine", "-lselect=3", script="#PBS -N a -l select=2\ntrue\n")
    assert (request.name, len(request.chunks)) == ("mine", 3)


def test_variables_are_given_by_name_and_value():
    """qsub -v X=, and -V for the whole environment."""
    given = asked("-v", "A=1,B='2,3',C", environ={"C": "4"}).variables
    assert given == {"A": "1", "B": "2,3", "C": "4"}
    assert asked("-V", environ={"C": "4"}).variables == {"C": "4"}
