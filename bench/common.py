"""What the benchmarks share: running programs on given cores, text that all of them read alike, spread, tables."""
import argparse
import bz2
import collections
import contextlib
import dataclasses
import gzip
import json
import lzma
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Long lines are cut here for everybody: word2vec cuts at 1,000 words, fastText at 1,024, gensim at 10,000.
LINE_WORDS_MAX = 1000


class Failure(Exception):
    """Ends a benchmark with one line: what, where, what to try."""


def run_main(main):
    try:
        main()
    except Failure as failure:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)


def say(text=""):
    """A line of progress or remark; results go to standard output."""
    print(text, file=sys.stderr, flush=True)


# --- options -----------------------------------------------------------------------------------------------------

@dataclasses.dataclass
class Settings:
    dim: int = 200
    window: int = 5
    negatives: int = 10
    sample: float = 2e-3
    min_count: int = 3
    threads: int = 1
    lr: float | None = None  # None: each program's own default
    model: str = "sgns"  # or subword: skip-gram over words made of character n-grams

    def flags(self):
        """As options of `streamvec train`."""
        flags = ["--dim", self.dim, "--window", self.window, "--negatives", self.negatives, "--sample", self.sample,
                 "--min-count", self.min_count, "--threads", self.threads]
        flags += [] if self.model == "sgns" else ["--model", self.model]
        return flags + ([] if self.lr is None else ["--lr", self.lr])

    def __str__(self):
        rate = "default rates" if self.lr is None else f"lr {self.lr:g}"
        return (f"{self.model}, dim {self.dim}, window {self.window}, negatives {self.negatives}, sample {self.sample:g}, "
                f"min-count {self.min_count}, {rate}, {count_of(self.threads, 'thread')}")


def parser_of(doc):
    return argparse.ArgumentParser(description=doc.split("\n\n")[0], epilog="\n\n".join(doc.split("\n\n")[1:]),
                                   formatter_class=argparse.RawDescriptionHelpFormatter)


def add_common_options(parser, without=()):
    """The settings, those `without` excepted, and where to run."""
    defaults = Settings()
    for field in dataclasses.fields(Settings):
        if field.name in without:
            continue
        kind = float if field.name in ("sample", "lr") else str if field.name == "model" else int
        parser.add_argument("--" + field.name.replace("_", "-"), type=kind, default=getattr(defaults, field.name))
    parser.add_argument("--cores", help="cores to run on, such as 0 or 0,1 or 2-5 (default: the first, one per thread)")
    parser.add_argument("--program", help="default: $STREAMVEC_BIN, else build/release/streamvec")
    parser.add_argument("--work", help="directory for texts and models, removed at the end (default: a temporary one)")
    parser.add_argument("--out", help="write all figures to this file as JSON")


def add_set_options(parser):
    parser.add_argument("--similarity", action="append", default=[], metavar="F", help="a word similarity set")
    parser.add_argument("--analogy", action="append", default=[], metavar="F", help="an analogy set")


def settings_of(args):
    given = vars(args)
    return Settings(**{f.name: given[f.name] for f in dataclasses.fields(Settings) if f.name in given})


def list_of(text, kind=str):
    try:
        return [kind(part) for part in text.split(",") if part]
    except ValueError:
        raise Failure(f"{text} is not a list of numbers; write it as 1,2,3") from None


def cores_of(text, threads):
    """The core numbers to pin to, at least one per thread."""
    allowed = sorted(os.sched_getaffinity(0))
    if text is None:
        cores = allowed[:threads]
    else:
        cores = []
        for part in list_of(text):
            first, _, last = part.partition("-")
            if not first.isdigit() or (last and not last.isdigit()):
                raise Failure(f"--cores {text}: write it as 0 or 0,1 or 2-5")
            cores += range(int(first), int(last or first) + 1)
    if unknown := set(cores) - set(allowed):
        raise Failure(f"core {min(unknown)} is not ours to run on; there are {','.join(map(str, allowed))}")
    if len(cores) < threads:
        raise Failure(f"{count_of(threads, 'thread')} on {count_of(len(cores), 'core')}: one thread would not mean one "
                      "core; give more --cores or fewer threads")
    return cores


@contextlib.contextmanager
def work_directory(args):
    if args.work:
        pathlib.Path(args.work).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="streamvec-bench-", dir=args.work) as path:
        yield pathlib.Path(path)


# --- programs ----------------------------------------------------------------------------------------------------

def pinned(cores, command):
    """The command line that runs `command` on these cores alone."""
    return ["taskset", "-c", ",".join(map(str, cores)), *map(str, command)]


def output_of(command, environment=None):
    """What a command prints on standard output; Failure with its last line of complaint when it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise Failure(f"{command[0]} is not installed") from None
    if done.returncode != 0:
        complaint = (done.stderr.strip().splitlines() or [f"left with {done.returncode}"])[-1]
        raise Failure(complaint)
    return done.stdout


class Program:
    """Our program, pinned to cores."""

    def __init__(self, path, cores):
        self.path = pathlib.Path(path or os.environ.get("STREAMVEC_BIN") or ROOT / "build/release/streamvec")
        self.cores = cores
        if not os.access(self.path, os.X_OK):
            raise Failure(f"{self.path} is not there; run `make build`, or give --program")

    def run(self, *args):
        return output_of(pinned(self.cores, [self.path, *args]))

    def train(self, texts, model, settings, *, epochs=1, kernel="auto", seed=1, extra=(), cores=None):
        """Trains into a fresh directory, or further in one that holds a model, and returns what --json says."""
        command = [self.path, "train", *texts, "--out", model, *settings.flags(), "--epochs", epochs, "--kernel",
                   kernel, "--seed", seed, "--json", *extra]
        return json.loads(output_of(pinned(cores or self.cores, command)))

    def evaluate(self, model, *flags):
        return json.loads(self.run("eval", model, *flags, "--json"))

    def quality(self, model, similarity, analogy):
        """Set name to figure, in the order given: Spearman's correlation, or the share of analogies solved."""
        flags = [part for path in similarity for part in ("--similarity", path)]
        flags += [part for path in analogy for part in ("--analogy", path)]
        report = self.evaluate(model, *flags)
        figures = {entry["set"]: entry["spearman"] for entry in report["similarity"]}
        figures.update({entry["set"]: entry["accuracy"] for entry in report["analogy"]})
        return figures

    def import_vectors(self, vectors, model):
        self.run("import", vectors, "--out", model)

    def kernels(self, wanted, work):
        """Those of the wanted kernels that this machine has, as {kind: name}; one line for each that it lacks."""
        text = work / "tiny.txt"
        text.write_text("one two three four five six seven eight nine ten\n" * 50)
        names = {}
        for kind in wanted:
            model = work / f"tiny-{kind}"
            try:
                name = self.train([text], model, Settings(dim=16, min_count=1), kernel=kind)["kernel"]
            except Failure as failure:
                say(f"kernel {kind} is left out: {str(failure).removeprefix('streamvec: ')}")
                continue
            if name in names.values():
                say(f"kernel {kind} is {name} here, which is measured already")
                continue
            names[kind] = name
        if not names:
            raise Failure("this machine has none of the kernels asked for; try --kernels auto")
        return names

    def roofline(self, settings, *, keep, rows):
        """What bench_roofline measures for these settings, or None where it was not built."""
        for path in (self.path.parent / "bench" / "bench_roofline", self.path.parent / "bench_roofline"):
            if os.access(path, os.X_OK):
                return json.loads(output_of(pinned(self.cores[:1], [
                    path, "--dim", settings.dim, "--window", settings.window, "--negatives", settings.negatives,
                    "--sample", settings.sample, "--keep", keep, "--rows", rows, "--json"])))
        say(f"no roofline: bench_roofline is not beside {self.path}; build that target")
        return None


# --- text --------------------------------------------------------------------------------------------------------

@dataclasses.dataclass
class Text:
    """A file of lower-case words with single spaces between, in lines of at most LINE_WORDS_MAX words."""
    path: pathlib.Path
    name: str
    bytes: int
    tokens: int
    lines: int
    vocab: int   # words seen at least min_count times
    known: int   # how many of the tokens those are

    def __str__(self):
        return (f"{self.name}: {self.bytes / 1e6:.1f} MB, {self.tokens:,} tokens, {self.vocab:,} words, "
                f"{count_of(self.lines, 'line')}")


def open_text(path):
    open_any = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}.get(pathlib.Path(path).suffix, open)
    try:
        return open_any(path, "rt", encoding="utf-8", errors="replace")
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None


def blocks_of(stream):
    """The text in pieces of about 1 MB that end at a line's end, or between words where a line is longer."""
    rest = ""
    while block := stream.read(1 << 20):
        block = rest + block
        end = block.rfind("\n") + 1 or block.rfind(" ") + 1
        rest = block[end:]
        yield block[:end]
    yield rest


def lines_of(path):
    """Lists of words. Whatever punctuation and case would be to each program, the words are the same for all."""
    word = re.compile(r"[^\W_]+")
    with open_text(path) as stream:
        for block in blocks_of(stream):
            for line in unicodedata.normalize("NFKC", block).casefold().split("\n"):
                words = word.findall(line)
                for begin in range(0, len(words), LINE_WORDS_MAX):
                    yield words[begin:begin + LINE_WORDS_MAX]


def prepare_text(path, target, min_count, bytes_max=None):
    """Writes what every program shall read to `target`: all of `path`, or its beginning up to bytes_max bytes."""
    counts = collections.Counter()
    size = lines = 0
    with open(target, "w", encoding="utf-8") as out:
        for words in lines_of(path):
            line = " ".join(words) + "\n"
            size += len(line.encode())
            if bytes_max and size > bytes_max and lines > 0:
                size -= len(line.encode())
                break
            out.write(line)
            counts.update(words)
            lines += 1
    if not counts:
        raise Failure(f"{path} holds no words")
    known = [count for count in counts.values() if count >= min_count]
    if not known:
        raise Failure(f"{path}: no word occurs {min_count} times; try a smaller --min-count or more text")
    return Text(path=pathlib.Path(target), name=pathlib.Path(path).name, bytes=size, tokens=sum(counts.values()),
                lines=lines, vocab=len(known), known=sum(known))


def make_up_text(target, tokens=2_000_000, words=50_000):
    """Words drawn independently by Zipf's law: enough for speed, nothing to learn."""
    import numpy
    draw = numpy.random.default_rng(1)
    shares = 1 / (numpy.arange(words) + 2.7)
    letters = "etaoinsrhl"
    names = ["".join(letters[int(digit)] for digit in str(rank)) for rank in range(words)]
    with open(target, "w", encoding="utf-8") as out:
        for _ in range(tokens // 1000):
            out.write(" ".join(names[rank] for rank in draw.choice(words, 1000, p=shares / shares.sum())) + "\n")
    return target


# --- results -----------------------------------------------------------------------------------------------------

def count_of(number, noun):
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


@dataclasses.dataclass
class Spread:
    values: list

    @property
    def median(self):
        return statistics.median(self.values)

    def show(self, form):
        low, high = format(min(self.values), form), format(max(self.values), form)
        return f"{format(self.median, form)} ({low} to {high})" if len(self.values) > 1 else low

    def json(self):
        return {"median": self.median, "min": min(self.values), "max": max(self.values), "runs": self.values}


def mean_and_deviation(values):
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else float("nan")


def figure(value, form=".3f"):
    return "-" if value is None or value != value else format(value, form)


def mean_of(figures):
    """Over the sets that could be measured."""
    values = [value for value in figures.values() if value is not None]
    return statistics.fmean(values) if values else None


def print_table(header, rows):
    """Markdown, with the columns in line; the first column is text, the others figures."""
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    align = [str.ljust] + [str.rjust] * (len(header) - 1)
    rule = ["-" * widths[0]] + ["-" * (width - 1) + ":" for width in widths[1:]]
    for row in [cells[0], rule, *cells[1:]]:
        print("| " + " | ".join(place(cell, width) for place, cell, width in zip(align, row, widths)) + " |")
    print(flush=True)


def commit():
    try:
        name = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
        return name.stdout.strip() or "unknown"
    except FileNotFoundError:
        return "unknown"


def machine():
    """Processor, cores, system, commit and load, for the head of every report."""
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        models = re.findall(r"model name\s*:\s*(.+)", info.read())
    cores = len(os.sched_getaffinity(0))
    load = os.getloadavg()[0]
    if load > 0.5:
        say(f"the machine is busy (load {load:.1f} on {count_of(cores, 'core')}): expect spread, and lower figures")
    return {"cpu": models[0] if models else platform.machine(), "cores": cores, "system": platform.platform(),
            "commit": commit(), "load": round(load, 2)}


def print_head(title, about, *lines):
    print(f"{title}: {about['cpu']}, {count_of(about['cores'], 'core')}, commit {about['commit']}, "
          f"load {about['load']}")
    for line in lines:
        print(line)
    print(flush=True)


def write_json(path, results):
    if path:
        pathlib.Path(path).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
