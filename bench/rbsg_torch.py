#!/usr/bin/python3
"""How fast is the character model as one would write it in PyTorch: packed sequences, no trie, no shared work?

Run: bench/rbsg_torch.py [--threads 1] [--pairs 256] [--batches 3] [--device cpu|cuda] [--end-mark]
        [--program build/release/bench/bench_rbsg] [--kernels simd,auto] [--rounds 3] FILE...
    The model of bench_rbsg (char 128, LSTM 512, linear to 200, 10 negatives a pair, Adam), every word of every pair read
    by itself as 2018's code did, in batches of --pairs; pairs a second, and the time of an epoch of 3.35 M pairs.
    With --program that one takes turns with it, --rounds times, on the same text and threads, once with each of
    --kernels; a ratio compares two runs of one round.
Needs Debian's python3-torch; the project itself does not. Its BLAS is what Debian's alternatives say: the reference one
unless libopenblas0 is there, which is several times as fast.
"""
import argparse
import collections
import random
import re
import time

import common

import torch
from torch import nn

EPOCH_PAIRS = 3.35e6
NEGATIVES = 10


class Encoder(nn.Module):
    """Characters, LSTM, last hidden state, linear."""

    def __init__(self, characters):
        super().__init__()
        self.characters = nn.Embedding(characters, 128, padding_idx=0)
        self.lstm = nn.LSTM(128, 512, batch_first=True)
        self.output = nn.Linear(512, 200)

    def forward(self, padded, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.characters(padded), lengths, batch_first=True,
                                                   enforce_sorted=False)
        _, (last, _) = self.lstm(packed)
        return self.output(last[0])


def read_pairs(files, seed):
    """Words of at least 3 occurrences, thinned out at 2e-3, windows of 1 to 5; the pairs in the order of the text."""
    draw = random.Random(seed)
    words = [word for path in files for word in re.findall(r"\w+", open(path, encoding="utf-8").read().lower())]
    counts = collections.Counter(words)
    total = len(words)

    def keep(word):
        ratio = 2e-3 * total / counts[word]
        return counts[word] >= 3 and draw.random() < ratio + ratio ** 0.5

    words = [word for word in words if keep(word)]
    vocabulary = sorted(word for word in counts if counts[word] >= 3)
    pairs = []
    for i, word in enumerate(words):
        reach = draw.randint(1, 5)
        pairs += [(word, other) for j, other in enumerate(words[max(0, i - reach):i + reach + 1], max(0, i - reach)) if j != i]
    return pairs, vocabulary, [counts[word] ** 0.75 for word in vocabulary]


def train_batches(arguments, text):
    """Pairs a second of the batches after the first, which warms up."""
    pairs, vocabulary, weights = text
    letters = {letter: number for number, letter in enumerate(sorted(set("".join(vocabulary))), 3)}
    end = [2] if arguments.end_mark else []
    spelled = [torch.tensor([1, *(letters[letter] for letter in word), *end]) for word in vocabulary]
    lengths = torch.tensor([len(spelling) for spelling in spelled])
    padded = nn.utils.rnn.pad_sequence(spelled, batch_first=True).to(arguments.device)
    number_of = {word: number for number, word in enumerate(vocabulary)}
    pairs = torch.tensor([(number_of[one], number_of[two]) for one, two in pairs])
    weights = torch.tensor(weights)
    centre, context = (Encoder(len(letters) + 3).to(arguments.device) for _ in range(2))
    optimizer = torch.optim.Adam([*centre.parameters(), *context.parameters()], lr=1e-3)
    seconds = 0

    def encode(encoder, words):
        some = lengths[words]
        return encoder(padded[words.to(arguments.device), :int(some.max())], some)

    for number in range(arguments.batches + 1):
        begin = len(pairs) // (arguments.batches + 2) * (number + 1)
        batch = pairs[begin:begin + arguments.pairs]
        negatives = torch.multinomial(weights, NEGATIVES * len(batch), replacement=True)
        start = time.monotonic()
        inputs = encode(centre, batch[:, 0])
        outputs = encode(context, torch.cat([batch[:, 1], negatives]))
        positive = (inputs * outputs[:len(batch)]).sum(1)
        negative = torch.einsum("bd,bnd->bn", inputs, outputs[len(batch):].view(len(batch), NEGATIVES, -1))
        loss = -(nn.functional.logsigmoid(positive).sum() + nn.functional.logsigmoid(-negative).sum()) / len(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if arguments.device == "cuda":
            torch.cuda.synchronize()
        seconds += time.monotonic() - start if number > 0 else 0
    return arguments.batches * arguments.pairs / seconds


def run_program(arguments, kernel):
    """Pairs a second of bench_rbsg."""
    end = ["--end-mark"] if arguments.end_mark else []
    done = common.output_of([arguments.program, "--threads", str(arguments.threads), "--kernel", kernel, *end, *arguments.files])
    common.say(done.rstrip())
    return EPOCH_PAIRS / float(re.search(r"an epoch: ([0-9.]+) s", done).group(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=256)
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--end-mark", action="store_true")
    parser.add_argument("--program")
    parser.add_argument("--kernels", default="auto")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")  # tf32, as ours
    text = read_pairs(arguments.files, 1)
    kernels = common.list_of(arguments.kernels) if arguments.program else []
    plain, ours = [], {kernel: [] for kernel in kernels}
    for _ in range(arguments.rounds if arguments.program else 1):
        plain.append(train_batches(arguments, text))
        print(f"PyTorch {torch.__version__}, {arguments.device}, {arguments.threads} threads: {plain[-1]:.0f} pairs/s, "
              f"an epoch {EPOCH_PAIRS / plain[-1]:.0f} s", flush=True)
        for kernel in kernels:
            ours[kernel].append(run_program(arguments, kernel))
    if kernels:
        rows = [["PyTorch", common.Spread(plain).show(".1f"), "1"]]
        for kernel, speeds in ours.items():
            ratios = common.Spread([speed / beside for speed, beside in zip(speeds, plain)])
            rows.append([f"bench_rbsg, {kernel}", common.Spread(speeds).show(",.0f"), ratios.show(",.0f")])
        common.print_table(["program", "pairs/s", "times PyTorch"], rows)


if __name__ == "__main__":
    common.run_main(main)
