"""The programs we are measured against, run on the same text and settings and pinned to the same cores.

Each train_*() returns a dict: tokens_per_s (raw words of the text a second of training, without counting), seconds,
vocab, vectors (a file that `streamvec import` reads), and how the speed was taken.
"""
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import time

from common import Failure, output_of, pinned


def train_fasttext(text, settings, epochs, cores, out, seed=1):
    """Debian's fasttext: plain skip-gram, or with character n-grams of 3 to 6 for the subword model.

    fastText tells its speed itself, in words of its vocabulary; by the clock it is the time from the end of counting
    to its last line of progress. The better of both counts.
    """
    minn, maxn = (3, 6) if settings.model == "subword" else (0, 0)
    command = ["fasttext", "skipgram", "-input", text.path, "-output", out, "-dim", settings.dim, "-ws",
               settings.window, "-neg", settings.negatives, "-t", settings.sample, "-minCount", settings.min_count,
               "-epoch", epochs, "-thread", settings.threads, "-minn", minn, "-maxn", maxn, "-seed", seed]
    if settings.lr is not None:
        command += ["-lr", settings.lr]
    log, seconds = watch_fasttext(pinned(cores, command))
    told = re.findall(r"words/sec/thread:\s*(\d+)", log)
    if not told:
        raise Failure(f"fasttext did not tell its speed; it said: {log.strip()[-200:]}")
    # Words too rare for the vocabulary are read and skipped without being counted in words/sec.
    by_itself = int(told[-1]) * settings.threads * max(1.0, text.tokens / (text.known + text.lines))
    by_clock = text.tokens * epochs / seconds
    best = max(by_itself, by_clock)
    return {"tokens_per_s": best, "seconds": text.tokens * epochs / best,
            "speed_from": "its own words/sec" if best == by_itself else "the clock",
            "vocab": int(re.findall(r"Number of words:\s*(\d+)", log)[-1]),
            "vectors": pathlib.Path(f"{out}.{'bin' if maxn else 'vec'}")}


def watch_fasttext(command):
    """Its whole output, and the seconds from the end of counting to its last line of progress."""
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise Failure("taskset is not installed (package util-linux)") from None
    log, counted, last = b"", None, None
    while piece := os.read(process.stdout.fileno(), 1 << 16):
        log += piece
        if b"words/sec" in piece:
            last = time.monotonic()
        if counted is None and b"Number of labels" in log:
            counted = time.monotonic()
    if process.wait() != 0 or counted is None or last is None:
        raise Failure(f"fasttext failed: {log.decode(errors='replace').strip()[-200:]}")
    return log.decode(errors="replace"), max(last - counted, 1e-9)


def train_gensim(text, settings, epochs, cores, out, seed=1):
    """gensim's Word2Vec with sg=1 in its compiled code."""
    if settings.model != "sgns":
        raise Failure(f"gensim's Word2Vec has no {settings.model} model; try --peers fasttext")
    vectors = pathlib.Path(f"{out}.bin")
    job = {"settings": dataclasses.asdict(settings), "text": str(text.path), "epochs": epochs, "seed": seed,
           "vectors": str(vectors)}
    # Small dot products gain nothing from threads of the linear algebra library beside gensim's own.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    script = pathlib.Path(__file__).with_name("gensim_train.py")
    done = json.loads(output_of(pinned(cores, [sys.executable, script, json.dumps(job)]), environment))
    return {"tokens_per_s": text.tokens * epochs / done["seconds"], "seconds": done["seconds"],
            "speed_from": "the clock around train()", "vocab": done["vocab"], "vectors": vectors,
            "version": done["version"]}


PEERS = {"fasttext": train_fasttext, "gensim": train_gensim}
