"""A stream's memory does not grow with its length: 10^8 tokens with 10^7 distinct words into 10^5 slots."""
import pathlib
import subprocess

import pytest
from support import PROGRAM, SANITIZED, TIMEOUT_S, start

GENERATOR = pathlib.Path(PROGRAM).parent / "bench" / "bench_zipf_text"
MILLION = 1_000_000
TOKENS, WORDS = 100 * MILLION, 10 * MILLION
TOKENS_A_LINE = 20
# Before the first of them replay and vocabulary are full and the model was looked at; in each it is, more than once.
EARLY, LATE = (20 * MILLION, 45 * MILLION), (75 * MILLION, 100 * MILLION)
# The cheapest training there is, for what grows would grow by reading.
OPTIONS = ["--stream", "--vocab-max", "100000", "--dim", "8", "--window", "1", "--negatives", "1", "--replay-ratio", "1",
           "--replay-chunks", "16384", "--threads", "1", "--checkpoint-every", "1", "--evaluate-every", "0",
           "--snapshot-every", str(10 * MILLION)]


def resident(pid):
    """Kilobytes: now, and the most there were since forget_most()."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    values = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS", "VmHWM"))}
    return int(values["VmRSS"]), int(values["VmHWM"])


def forget_most(pid):
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")


def pump(generator, training):
    """Hands the text on and gives (tokens, kilobytes, most kilobytes) all along."""
    samples, tokens = [], 0
    marks = [begin for begin, _ in (EARLY, LATE)]
    while block := generator.stdout.read(1 << 18):
        training.stdin.write(block)
        tokens += TOKENS_A_LINE * block.count(b"\n")
        if marks and tokens >= marks[0]:
            marks.pop(0)
            forget_most(training.pid)
        samples.append((tokens, *resident(training.pid)))
    return samples


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    if not GENERATOR.exists():
        pytest.skip(f"{GENERATOR} is not built")
    if SANITIZED:
        pytest.skip("sanitizers have memory of their own")
    generator = subprocess.Popen([GENERATOR, str(TOKENS), str(WORDS)], stdout=subprocess.PIPE)
    training = start("train", "-", "--out", tmp_path_factory.mktemp("memory") / "m", *OPTIONS, stdin=subprocess.PIPE,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        taken = pump(generator, training)
        training.stdin.close()
        assert training.wait(timeout=TIMEOUT_S) == 0
    finally:
        for process in (generator, training):
            process.kill()
            process.wait()
    return taken


def within(samples, span):
    begin, end = span
    chosen = [sample for sample in samples if begin <= sample[0] < end]
    assert len(chosen) > 100
    return chosen


class TestMemory:
    # The least is no measure: whether a moment comes without a look or a save under way is chance.
    def test_a_stream_needs_no_more_later_on_saves_and_looks_included(self, samples):
        first, last = (within(samples, span)[-1][2] for span in (EARLY, LATE))
        # They take turns. The search for drift begins with the second snapshot, which may come late in the first span.
        assert last <= 1.02 * first, f"at most {first} kB became {last} kB"
