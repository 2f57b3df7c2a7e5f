"""Sizes at the ends of their ranges: they work, or the program says what is missing and what to try."""
import json
import resource
import subprocess

import pytest
from support import PROGRAM, QUICK, SANITIZED, TIMEOUT_S, assert_one_line, run, topical_text, wide_text

MOST = 2_147_483_647
ADDRESSES = 40 << 30  # so that no machine has too much for these tests


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text").write_text(topical_text(3_000))
    return tmp_path / "text"


def train_within(limit, *args):
    """Trains with no more address space than that."""
    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    return subprocess.run([PROGRAM, "train", *QUICK, *map(str, args)], capture_output=True, timeout=TIMEOUT_S,
                          preexec_fn=bound, stdin=subprocess.DEVNULL)


class TestSizes:
    @pytest.mark.skipif(SANITIZED, reason="sanitizers take terabytes of addresses")
    @pytest.mark.parametrize("options, advice", [
        (["--stream", "--vocab-max", MOST], "--vocab-max"),
        (["--stream", "--model", "hybrid", "--vocab-max", MOST], "--vocab-max"),
        (["--stream", "--model", "subword", "--vocab-max", MOST], "--vocab-max"),
        (["--stream", "--replay-chunks", MOST], "--replay-chunks"),
        (["--model", "subword", "--bucket", MOST], "--bucket"),
        (["--model", "glove", "--memory", 1 << 24], "--memory"),
        (["--model", "rbsg", "--hidden", 8192, "--char-dim", 8192, "--threads", 1024], "--threads"),
    ])
    def test_what_does_not_fit_is_an_error_with_what_to_try(self, text, tmp_path, options, advice):
        done = train_within(ADDRESSES, text, "--out", tmp_path / "m", *options)
        said = done.stderr.decode()
        assert done.returncode == 1, said
        assert_one_line(said)
        assert "memory" in said and advice in said.split("try")[1], said

    @pytest.mark.skipif(SANITIZED, reason="sanitizers take terabytes of addresses")
    def test_vectors_that_do_not_fit_are_an_error_with_both_figures(self, tmp_path):
        (tmp_path / "text").write_text(wide_text(60_000, 20_000))
        done = subprocess.run([PROGRAM, "train", str(tmp_path / "text"), "--out", str(tmp_path / "m"), "--dim", "65536",
                               "--min-count", "1"], capture_output=True, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)))
        said = done.stderr.decode()
        assert done.returncode == 1, said
        assert_one_line(said)
        assert "MB are needed" in said and "MB are free" in said and "--dim" in said, said

    def test_buckets_take_memory_only_where_there_are_ngrams(self, text, tmp_path):
        done = run("train", text, "--out", tmp_path / "m", "--model", "subword", "--bucket", MOST, *QUICK, "--json", exit=0)
        assert json.loads(done.out)["rss_mb"] < (4_000 if SANITIZED else 500)
        run("nearest", tmp_path / "m", "neverseen", exit=0)
