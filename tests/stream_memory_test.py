"""A stream's memory does not grow with its length: 10^8 tokens with 10^7 distinct words into 10^5 slots."""
import pathlib
import statistics
import subprocess

import pytest
from stream_support import PATIENCE_S
from support import PROGRAM, SANITIZED, start

GENERATOR = pathlib.Path(PROGRAM).parent / "bench" / "bench_zipf_text"
TOKENS, SETTLED, WORDS = 100_000_000, 10_000_000, 10_000_000
TOKENS_A_LINE = 20
SAMPLE_EVERY = 1_000_000
# The cheapest training there is, for what grows would grow by reading. Replay has to be full by SETTLED tokens.
OPTIONS = ["--stream", "--vocab-max", "100000", "--dim", "8", "--window", "1", "--negatives", "1", "--replay-ratio", "1",
           "--replay-chunks", "16384", "--threads", "1", "--checkpoint-every", "1", "--evaluate-every", "3"]


def resident(pid):
    """Kilobytes: now, and the most there ever were."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    values = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS", "VmHWM"))}
    return int(values["VmRSS"]), int(values["VmHWM"])


def pump(generator, training):
    """Hands the text on and gives (tokens, kilobytes, most kilobytes) all along."""
    samples, tokens = [], 0
    while block := generator.stdout.read(1 << 18):
        training.stdin.write(block)
        tokens += TOKENS_A_LINE * block.count(b"\n")
        if tokens >= SAMPLE_EVERY * (len(samples) + 1):
            samples.append((tokens, *resident(training.pid)))
    return samples


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    if not GENERATOR.exists():
        pytest.skip(f"{GENERATOR} is not built")
    if SANITIZED:
        pytest.skip("sanitizers have memory of their own")
    generator = subprocess.Popen([GENERATOR, str(TOKENS), str(WORDS)], stdout=subprocess.PIPE)
    training = start("train", "-", "--out", tmp_path_factory.mktemp("memory") / "m", *OPTIONS, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL)
    try:
        taken = pump(generator, training)
        training.stdin.close()
        assert training.wait(timeout=PATIENCE_S) == 0
    finally:
        for process in (generator, training):
            process.kill()
            process.wait()
    return taken


class TestMemory:
    def test_resident_size_is_flat_from_ten_million_tokens_on(self, samples):
        early, late = ([kilobytes for tokens, kilobytes, _ in samples if begin <= tokens < end]
                       for begin, end in ((SETTLED, 3 * SETTLED), (TOKENS - 2 * SETTLED, TOKENS)))
        first, last = statistics.median(early), statistics.median(late)
        assert samples[-1][0] > 0.98 * TOKENS and len(early) >= 18
        assert abs(last - first) <= 0.02 * first, f"{first} kB became {last} kB: {samples[::10]}"

    def test_checkpoints_and_snapshots_need_no_more_later_on(self, samples):
        most = {tokens // SETTLED: highest for tokens, _, highest in samples}
        # A look, a snapshot and a save may fall together for the first time late: that is no growth.
        assert most[9] <= 1.15 * most[3], [f"{tokens}: {highest} kB" for tokens, _, highest in samples[::10]]
