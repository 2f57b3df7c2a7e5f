"""The MPI transport under a real mpirun: three ranks on this machine."""
import os
import subprocess
import time

RANK = os.environ["STREAMVEC_MPI_RANK"]
MPIRUN = os.environ["STREAMVEC_MPIRUN"]


# Open MPI leaves memory behind when it ends; leaks are looked for in tests without it.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}


def run(name, ranks=3):
    start = time.monotonic()
    done = subprocess.run([MPIRUN, "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), RANK, name],
                          capture_output=True, text=True, timeout=100, env=ENVIRONMENT)
    return done, time.monotonic() - start


def oks(done):
    return sorted(line for line in done.stdout.splitlines() if line.startswith("rank "))


def test_frames_of_all_ranks_arrive_whole_and_in_order():
    done, _ = run("all_to_all")
    assert done.returncode == 0, done.stdout + done.stderr
    assert oks(done) == [f"rank {rank}: ok" for rank in range(3)]


def test_one_rank_is_enough():
    done, _ = run("all_to_all", ranks=1)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_ring_leaves_every_rank_with_the_mean():
    done, _ = run("ring")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(oks(done)) == 3


def test_what_a_rank_sent_last_arrives_before_it_ends():
    done, _ = run("last_words")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_killed_rank_ends_the_program_with_an_error():
    done, took_s = run("killed")
    assert done.returncode != 0  # what mpirun says of it is sometimes cut short
    assert took_s < 30


def test_a_stuck_rank_does_not_hold_the_others_for_ever():
    done, took_s = run("stuck")
    assert done.returncode != 0
    assert took_s < 30


def test_a_stopped_rank_is_waited_for_until_it_has_been_silent_and_the_first_says_what_came_of_all():
    done, took_s = run("stopped")
    assert done.returncode == 1, done.stdout + done.stderr  # of mpirun; the rank itself left with 0
    assert "rank 0: ok" in done.stdout
    assert took_s < 30


def test_a_rank_that_is_stopped_after_its_farewell_holds_nobody():
    done, took_s = run("stopped_later")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "rank 0: ok" in done.stdout
    assert took_s < 30


def test_where_the_first_rank_is_stopped_another_says_why_all_end():
    done, took_s = run("stopped_first")
    assert done.returncode != 0
    assert "rank 1: the first is silent" in done.stdout
    assert took_s < 30


def test_a_rank_that_is_busy_for_long_is_not_silent():
    done, _ = run("slow")
    assert done.returncode == 0, done.stdout + done.stderr
    assert oks(done) == [f"rank {rank}: ok" for rank in range(3)]
    assert "MPI_ABORT" not in done.stderr
