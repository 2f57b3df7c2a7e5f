"""What the end-to-end tests share: running the program, text to train on, and reading a model directory."""
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("STREAMVEC_BIN", str(ROOT / "build/release/streamvec"))
MOCK_KAFKA = os.environ.get("STREAMVEC_MOCK_KAFKA", str(ROOT / "build/release/tests/mock_kafka"))
SANITIZED = os.environ.get("STREAMVEC_SANITIZED") == "1"
LACKS = os.environ.get("STREAMVEC_LACKS", "").split()  # optional parts that the program was built without
TIMEOUT_S = 240 if SANITIZED else 150  # shared machines may stand still for a minute

# A quick training that still learns something of the text below.
QUICK = ["--dim", "16", "--epochs", "1", "--threads", "1", "--min-count", "1"]


def needs(part):
    """A test, or all of a class or file (pytestmark), that a build without this part cannot pass."""
    return pytest.mark.skipif(part in LACKS, reason=f"this build has no {part}")


def start(*args, **options):
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **options}
    return subprocess.Popen([PROGRAM, *map(str, args)], **options)


def wait_for(condition, what, patience_s=TIMEOUT_S):
    """Waits for an event, however long it takes on a busy machine."""
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)


def await_handlers(process):
    """Until the program catches Ctrl-C: before that a signal ends it as it ends any program."""
    def caught():
        if process.poll() is not None:
            return True
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        mask = int(status.split("SigCgt:")[1].split()[0], 16)
        return mask >> (signal.SIGINT - 1) & 1
    wait_for(caught, "signals to be caught")


HELD = []  # bound and not listening, until the end: nobody else is given these ports by chance


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        each.bind(("127.0.0.1", 0))
    HELD.extend(sockets)
    return [each.getsockname()[1] for each in sockets]


def run(*args, input=None, exit=None, cwd=None, env=None, timeout=TIMEOUT_S):
    """Runs the program to its end; with `exit` that exit code is demanded."""
    done = subprocess.run([PROGRAM, *map(str, args)], input=input, stdin=None if input is not None else subprocess.DEVNULL,
                          capture_output=True, timeout=timeout, cwd=cwd, env=env)
    done.out = done.stdout.decode()
    done.err = done.stderr.decode()
    if exit is not None:
        assert done.returncode == exit, f"{args} left with {done.returncode}\n{done.out}\n{done.err}"
    return done


def train(*args, exit=0, **options):
    """Trains quickly with --json and gives the object it printed."""
    done = run("train", *args, *QUICK, "--json", exit=exit, **options)
    return json.loads(done.out)


def assert_one_line(text):
    """An error is one line: what, where, what to try."""
    assert text.endswith("\n") and text.count("\n") == 1, text


def words_of_topic(topic, count=30):
    return [f"{'abcdefgh'[topic]}{chr(97 + i // 26)}{chr(97 + i % 26)}x" for i in range(count)]


def topical_text(tokens, seed=1, topics=4, words_per_sentence=12):
    """Sentences of one topic each, so that words of a topic become neighbours; frequent words come first."""
    draw = random.Random(seed)
    vocabularies = [words_of_topic(topic) for topic in range(topics)]
    weights = [1 / (rank + 2) for rank in range(30)]
    lines = []
    for _ in range(max(1, tokens // words_per_sentence)):
        lines.append(" ".join(draw.choices(vocabularies[draw.randrange(topics)], weights, k=words_per_sentence)))
    return "\n".join(lines) + "\n"


ENDINGS = ["ation", "less", "wards"]


def stem(number, letters=5):
    draw = random.Random(number)
    return "".join(draw.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(letters))


def text_of_endings(sentences=3000, letters=5, words=10):
    """Words of one ending come together; their stems say nothing."""
    draw = random.Random(1)
    return "\n".join(" ".join(stem(draw.randrange(40), letters) + ending for _ in range(words))
                     for ending in draw.choices(ENDINGS, k=sentences)) + "\n"


def wide_text(tokens, words, seed=1):
    """Text of many different words: a large table for little text."""
    draw = random.Random(seed)
    return "\n".join(" ".join(f"w{draw.randrange(words)}" for _ in range(20)) for _ in range(tokens // 20)) + "\n"


def newest(model):
    """The directory of the checkpoint that DIR/latest names."""
    model = pathlib.Path(model)
    latest = model / "latest"
    name = os.readlink(latest) if latest.is_symlink() else latest.read_text().strip()
    return model / pathlib.Path(name).name


def go_back_to_the_middle(model):
    """What a kill in the middle would have left behind: the checkpoint before the last."""
    saved = (path for path in pathlib.Path(model).iterdir() if path.name.isdigit())
    middle, last = sorted(saved, key=lambda path: int(path.name))
    shutil.rmtree(last)
    (pathlib.Path(model) / "latest").write_text(middle.name + "\n")


def weights(model):
    return (newest(model) / "model.safetensors").read_bytes()


def tensor_entries(data):
    """Of a file of weights: what it says of each tensor, and where they begin."""
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {name: entry for name, entry in header.items() if name != "__metadata__"}, 8 + size


def tensor_shapes(model):
    return {name: entry["shape"] for name, entry in tensor_entries(weights(model))[0].items()}


def tensor_rows(model, name):
    data = weights(model)
    entries, start = tensor_entries(data)
    begin, end = entries[name]["data_offsets"]
    values = memoryview(data)[start + begin:start + end].cast("f").tolist()
    cols = entries[name]["shape"][1]
    return [values[at:at + cols] for at in range(0, len(values), cols)]


def vocabulary(model):
    """(word, count) rows of vocab.tsv, in its order."""
    lines = (newest(model) / "vocab.tsv").read_text().splitlines()
    assert lines[0].startswith("#"), lines[0]
    return [(line.split("\t")[0], int(line.split("\t")[1])) for line in lines[1:]]


def tree(directory):
    """Every file below a directory with its bytes (the lock left out, which names its last holder), to see whether
    anything changed."""
    root = pathlib.Path(directory)
    return {str(path.relative_to(root)): path.read_bytes()
            for path in sorted(root.rglob("*")) if path.is_file() and path.name != ".lock"}


def runs(pid):
    """Whether there is such a process, other than one that is over and that nobody has waited for."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def children_of(pid):
    """Process ids, in the order in which they were started."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it is over
            continue
        if int(after_name[1]) == pid:
            found.append((int(after_name[19]), int(stat.parent.name)))
    return [child for _, child in sorted(found)]
