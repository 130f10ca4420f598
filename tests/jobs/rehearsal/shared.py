"""What tests of the rehearsal share beside its fixtures."""

from tests.needs import skip_without

HOSTS = ["n1", "n2", "n3"]
FACTOR = 10  # PBS takes so many times as many seconds
SCATTER = ("-l", "select=2:ncpus=2", "-l", "place=scatter")


def qstat_full(pbs, job_id):
    return pbs.run("qstat", "-xf", job_id).stdout


def no_process(pbs, words):
    """No host runs a command with these words in it."""
    skip_without("ps")
    listed = [pbs.cluster.run(["ps", "-eo", "args"], node=host) for host in pbs.hosts]
    return not any(words in done.stdout for done in listed)
