"""import streamvec: how training ends that is not let finish, by Ctrl-C, by an exception, by the end of Python."""
import os
import subprocess
import sys

import pytest
import support
from python_support import MODULE, streamvec

QUICK = {"dim": 8, "threads": 1, "min_count": 1}
LINE = "a few words to begin with"


def python(script, *arguments, **more):
    return subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", script, *map(str, arguments)], capture_output=True, text=True,
                          timeout=support.TIMEOUT_S, env={**os.environ, "PYTHONPATH": MODULE}, **more)


class TestEndOfPython:
    """A thread that is a daemon does not keep Python from ending."""
    TRAINING = """
import os, sys, threading, time
import streamvec
read = threading.Event()
def documents():
    for i in range(int(sys.argv[2])):
        if i == 2000:
            read.set()
        yield "a few words to begin with"
    read.set()
    while True:
        time.sleep(0.001)
def train():
    streamvec.train(documents=documents(), out=sys.argv[1], dim=8, threads=1, min_count=1)
    print("goes on")
threading.Thread(target=train, daemon=True).start()
read.wait()
"""

    def test_threads_that_ask_are_left_behind(self, trained):
        script = """
import sys, threading, time
import streamvec
v = streamvec.load(sys.argv[1])
def ask():
    while True:
        v.most_similar(v.index_to_key[0])
for _ in range(4):
    threading.Thread(target=ask, daemon=True).start()
time.sleep(0.3)
"""
        for _ in range(3):
            done = python(script, trained)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    @pytest.mark.parametrize("documents", [10**9, 50])
    def test_a_thread_that_trains_saves_first(self, tmp_path, documents):
        """While it reads, and while it waits for documents that do not come."""
        done = python(self.TRAINING, tmp_path / "m", documents)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert set(streamvec.load(tmp_path / "m")) == set(LINE.split())

    def test_a_fork_waits_for_no_training_of_its_parent(self, tmp_path):
        done = python(self.TRAINING + "child = os.fork()\n"
                                      "if child == 0:\n"
                                      "    sys.exit(7)\n"
                                      "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n", tmp_path / "m", 10**9)
        assert (done.returncode, done.stdout, done.stderr) == (0, "7\n", "")
        assert streamvec.load(tmp_path / "m").step > 0

    def test_nothing_is_begun_any_more(self, tmp_path):
        done = python("import atexit, sys\n"
                      "def late():\n"
                      "    try:\n"
                      "        streamvec.train(documents=['a few words'] * 9, out=sys.argv[1], min_count=1)\n"
                      "    except streamvec.Error as error:\n"
                      "        print(error.code)\n"
                      "atexit.register(late)\n"
                      "import streamvec\n", tmp_path / "m")
        assert (done.returncode, done.stdout, done.stderr) == (0, "CANCELLED\n", "")


class TestExceptions:
    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("count", [3, 5_000])
    def test_all_documents_before_one_are_trained_on(self, tmp_path, stream, count):
        def documents():
            yield from [LINE] * count
            raise LookupError("the database is gone")

        with pytest.raises(LookupError, match="database is gone"):
            streamvec.train(documents=documents(), out=tmp_path / "m", stream=stream, **QUICK)
        v = streamvec.load(tmp_path / "m")
        assert v.counts.tolist() == [count] * len(LINE.split())

    def test_what_is_no_document_is_their_end_too(self, tmp_path):
        with pytest.raises(TypeError, match="not int"):
            streamvec.train(documents=iter([LINE] * 300 + [7]), out=tmp_path / "m", **QUICK)
        assert streamvec.load(tmp_path / "m").counts.tolist() == [300] * len(LINE.split())

    def test_of_documents_that_can_be_read_again_the_same_call_goes_on(self, tmp_path):
        lines = support.topical_text(200_000).splitlines()

        class Corpus:
            passes = 0

            def __iter__(self):
                Corpus.passes += 1
                for i, line in enumerate(lines):
                    if Corpus.passes == 3 and i == 15_000:
                        raise LookupError
                    yield line

        whole = streamvec.train(documents=lines, out=tmp_path / "whole", epochs=2, **QUICK)
        with pytest.raises(LookupError):
            streamvec.train(documents=Corpus(), out=tmp_path / "m", epochs=2, **QUICK)
        assert streamvec.train(documents=Corpus(), out=tmp_path / "m", epochs=2, **QUICK).tokens == whole.tokens
        assert support.weights(tmp_path / "m") == support.weights(tmp_path / "whole")


class TestCtrlC:
    def test_when_all_is_trained_it_changes_nothing(self, tmp_path):
        """It comes while the model is saved for the first time, which is when a directory of it appears."""
        script = """
import os, pathlib, signal, sys, threading, time
import streamvec
out = pathlib.Path(sys.argv[1])
def interrupt():
    while not out.is_dir() or not any(path.is_dir() for path in out.iterdir()):
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)
thread = threading.Thread(target=interrupt)
thread.start()
words = [f"w{i}" for i in range(40_000)]
result = None
try:
    result = streamvec.train(documents=[" ".join(words[i:i + 100]) for i in range(0, len(words), 100)], out=out, dim=1024,
                             threads=1, min_count=1, tokenizer="whitespace")
    thread.join()
    print("trained", result.fraction)
except KeyboardInterrupt:
    print("interrupted" if result is None else "late")
"""
        for tries in range(5):  # a busy machine may have it come when the model is saved already
            done = python(script, tmp_path / f"m{tries}")
            if done.stdout != "late\n":
                break
        assert (done.returncode, done.stdout, done.stderr) == (0, "trained 1.0\n", "")


class TestThreads:
    @pytest.mark.skipif(support.SANITIZED, reason="sanitizers need all addresses")
    @pytest.mark.parametrize("stream", [False, True])
    def test_without_room_for_more_of_them_it_is_an_error(self, text, tmp_path, stream):
        script = """
import resource, sys
import streamvec
resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, 8 << 20))
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
try:
    streamvec.train(sys.argv[1], out=sys.argv[2], dim=8, threads=1024, drift=False, stream=bool(int(sys.argv[3])))
except streamvec.ResourceError as error:
    print(error.code, error)
"""
        done = python(script, text, tmp_path / "m", int(stream))
        assert done.returncode == 0 and done.stdout.startswith("RESOURCE_EXHAUSTED no more threads can be made"), done
        assert done.stdout.endswith("; try fewer threads\n")
