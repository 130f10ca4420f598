"""Checks of exercises/10_node_file.py: node files as PBS writes them."""

import pytest

from workshop.grader import expect


def node_file(*lines):
    return "".join(f"{line}\n" for line in lines)


def read(exercise, text):
    """What the exercise reads from the text: the hosts and the lines of each."""
    found = exercise.hosts_and_processes(text)
    two = isinstance(found, (tuple, list)) and len(found) == 2
    hosts_alone = two and isinstance(found[1], str)
    expect.that(
        found is None or (two and not hosts_alone),
        "hosts_and_processes must return two things, the list of hosts and the lines "
        f"per host, but returned {found!r}",
    )
    return found


@pytest.mark.ranks(1, init=False)
def test_a_line_for_each_host(exercise, seed):
    """One line for each host: one process on each."""
    hosts = [f"node{k:02}" for k in range(1, 2 + seed % 5)]
    found = read(exercise, node_file(*hosts))
    expect.equal(found[0], hosts, "the hosts")
    expect.number(found[1], 1, "the processes on each host")


@pytest.mark.ranks(1, init=False)
def test_repeated_lines(exercise, seed):
    """With mpiprocs=2 or more, a host has that many lines, and is still one host."""
    mpiprocs = 2 + seed % 3
    hosts = ["node01", "node02", "node03"]
    text = node_file(*(host for host in hosts for _ in range(mpiprocs)))
    found = read(exercise, text)
    expect.equal(list(found[0]), hosts, "the hosts")
    expect.number(found[1], mpiprocs, "the processes on each host")


@pytest.mark.ranks(1, init=False)
def test_order_of_the_file(exercise):
    """The first host of the file comes first, whatever the alphabet says."""
    for hosts in (["gpu-10.cluster", "gpu-02.cluster"], ["GPU-10.Lab", "gpu-02.Lab"]):
        found = read(exercise, node_file(*[hosts[0]] * 2, *[hosts[1]] * 2))
        expect.equal(list(found[0]), hosts, "the hosts")


@pytest.mark.ranks(1, init=False)
def test_lines_that_stand_apart(exercise):
    """The lines of one host need not follow each other."""
    for one_round in (["node07", "node03"], ["node07", "node03", "node03", "node07"]):
        found = read(exercise, node_file(*one_round * 4))
        expect.equal(list(found[0]), ["node07", "node03"], "the hosts")
        lines = 4 * one_round.count("node07")
        expect.number(found[1], lines, "the processes on each host")


@pytest.mark.ranks(1, init=False)
def test_ends_of_lines(exercise):
    """Empty lines, and a last line without a line break, change nothing."""
    found = read(exercise, "node07\n\nnode03\n\n")
    what = "the hosts, with empty lines in the file"
    expect.equal(list(found[0]), ["node07", "node03"], what)
    found = read(exercise, "node07\nnode03")
    what = "the hosts, with no line break after the last one"
    expect.equal(list(found[0]), ["node07", "node03"], what)


@pytest.mark.ranks(1, init=False)
def test_unequal_numbers_are_refused(exercise, seed):
    """A host with fewer lines than another is refused; both numbers are named."""
    few, many = 4 + seed % 3, 8 + seed % 2
    for first, second in ((few, many), (many, few)):
        text = node_file(*["node70"] * first, *["node13"] * second)
        expect.raises(
            ValueError,
            exercise.hosts_and_processes,
            text,
            words=[str(few), str(many)],
            what=f"{first} lines of node70 and {second} of node13",
        )
    # as many lines as hosts times two, and yet not two on each
    text = node_file("node07", "node03", "node03", "node03")
    unequal = "one line of node07 and three of node03"
    expect.raises(ValueError, exercise.hosts_and_processes, text, what=unequal)
    text = node_file(*["node11"] * 2, text.strip())
    unequal = f"two lines of node11, {unequal}"
    expect.raises(ValueError, exercise.hosts_and_processes, text, what=unequal)
    for odd in range(3):
        hosts = ["node70", "node13", "node21"]
        text = node_file(*hosts * 4, hosts[odd])
        unequal = f"five lines of {hosts[odd]}, four of two others"
        refuse = exercise.hosts_and_processes
        expect.raises(ValueError, refuse, text, words=["4", "5"], what=unequal)


@pytest.mark.ranks(1, init=False)
def test_no_host_is_refused(exercise):
    """A file without hosts is refused."""
    for text in ("", "\n", "\n\n"):
        refuse = exercise.hosts_and_processes
        expect.raises(ValueError, refuse, text, what=f"the node file {text!r}")


@pytest.mark.ranks(1, init=False)
def test_node_rank(exercise):
    """The node rank is the index in the list of hosts."""
    hosts = ["node07", "node03", "node11"]
    found = [exercise.node_rank(hosts, host) for host in ("node07", "node03", "node11")]
    expect.equal(found, [0, 1, 2], "the node ranks of node07, node03, node11")
    expect.equal(hosts, ["node07", "node03", "node11"], "the list of hosts afterwards")


@pytest.mark.ranks(1, init=False)
def test_domains(exercise):
    """A host is the same with, without and with another domain."""
    long = ["gpu-2.hpc.example.org", "gpu-10.hpc.example.org"]
    short = ["gpu-2", "gpu-10"]
    local = ["gpu-2.localdomain", "gpu-10.localdomain"]
    for hosts, names in ((long, short), (short, long), (long, local)):
        given = list(hosts)
        found = [exercise.node_rank(given, name) for name in names]
        expect.equal(found, [0, 1], f"the node ranks of {names} in {hosts}")
        expect.equal(given, hosts, "the list of hosts afterwards")


@pytest.mark.ranks(1, init=False)
def test_names_that_begin_alike(exercise):
    """gpu-1 and gpu-10 are two hosts."""
    for hosts in (["gpu-10.cluster", "gpu-1.cluster"], ["gpu-10", "gpu-1"]):
        expect.equal(exercise.node_rank(hosts, "gpu-1"), 1, f"gpu-1 in {hosts}")


@pytest.mark.ranks(1, init=False)
def test_foreign_host_is_refused(exercise):
    """A host that is not in the file is refused, and named."""
    for stranger in ("gpu-1", "login"):
        expect.raises(
            ValueError,
            exercise.node_rank,
            ["gpu-10.cluster", "gpu-11.cluster"],
            stranger,
            words=[stranger],
            what=f"{stranger} in a job on gpu-10.cluster and gpu-11.cluster",
        )
