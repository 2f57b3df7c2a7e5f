"""Words that moved: streamvec drift on histories written here."""
import json
import random
import struct

import pytest
from support import assert_one_line, run, topical_text

TOPICS, WORDS, DIM = 8, 320, 16
MOVED = "c42"  # goes from the words with c to those with f


def write_vectors(stem, rows, words, metadata):
    """A safetensors file and its words, as docs/FORMATS.md has them."""
    values = b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)
    entry = {"dtype": "F32", "shape": [len(rows), len(rows[0])], "data_offsets": [0, len(values)]}
    header = json.dumps({"__metadata__": metadata, "input": entry}).encode()
    header += b" " * (-len(header) % 8)
    stem.parent.mkdir(parents=True, exist_ok=True)
    (stem.parent / f"{stem.name}.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + values)
    lines = [f"{word}\t{count}\n" for word, count in words]
    (stem.parent / f"{stem.name}.vocab.tsv").write_text("#word\tcount\n" + "".join(lines))


def sample(seed, moved=False, without=()):
    """Vectors of a language of topics; rare words are noisier, and every sample is noise of its own."""
    fixed, noise = random.Random(1), random.Random(seed)
    centres = [[fixed.gauss(0, 1) for _ in range(DIM)] for _ in range(TOPICS)]
    rows, words = [], []
    for i in range(WORDS):
        own = [fixed.gauss(0, 0.6) for _ in range(DIM)]
        name, count = f"{'abcdefgh'[i % TOPICS]}{i}", 30_000 // (i + 1) + 60
        topic = 5 if moved and name == MOVED else i % TOPICS
        row = [c + o + noise.gauss(0, 2 / count ** 0.5) for c, o in zip(centres[topic], own)]
        if name not in without:
            rows.append(row)
            words.append((name, count))
    return rows, words


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model whose history has three moments, each with its halves. Read it only."""
    folder = tmp_path_factory.mktemp("drift")
    moments = [(100, 1_546_300_800, sample(2, without=["h7"])), (200, 1_577_836_800, sample(3)),
               (300, 1_609_459_200, sample(4, moved=True))]
    write_vectors(folder / "vectors", *moments[-1][2], {})
    run("import", folder / "vectors.safetensors", "--out", folder / "model", exit=0)
    for step, time, (rows, words) in moments:
        metadata = {"time": str(time), "tokens": str(step * 1000)}
        write_vectors(folder / "model/history" / str(step), rows, words, metadata)
    for step, half, seed in ((100, "a", 5), (100, "b", 6), (200, "a", 7), (200, "b", 8), (300, "a", 9), (300, "b", 10)):
        without = ["h7"] if step == 100 else []
        write_vectors(folder / "model/history" / f"{step}-{half}", *sample(seed, step == 300, without), {})
    return folder / "model"


class TestDrift:
    def test_the_moved_word_comes_first_with_its_neighbours_then_and_now(self, model):
        answer = json.loads(run("drift", model, "-k", 5, "--json", exit=0).out)
        assert answer["from"] == {"step": 100, "time": 1_546_300_800, "tokens": 100_000}
        assert answer["to"]["step"] == 300 and answer["calibrated"] is True and answer["words"] == WORDS - 1
        first = answer["moved"][0]
        assert len(answer["moved"]) == 5 and first["word"] == MOVED and first["alert"] is True and first["p"] < 1e-3
        assert all(word[0] == "c" for word in first["neighbours_old"]), first
        assert all(word[0] == "f" for word in first["neighbours_new"]), first
        assert first["score"] > 2 * answer["moved"][1]["score"] and answer["alerts"] < 10

    def test_nothing_moved_between_the_first_two(self, model):
        answer = json.loads(run("drift", model, "--to", 200, "--json", exit=0).out)
        assert answer["to"]["step"] == 200 and answer["alerts"] == 0

    def test_moments_are_named_by_step_or_by_time(self, model):
        by_time = json.loads(run("drift", model, "--from", "2020-01", "--to", "2021-01-01", "--json", exit=0).out)
        by_step = json.loads(run("drift", model, "--from", 190, "--to", 1_000_000, "--json", exit=0).out)
        assert by_time == by_step and by_time["from"]["step"] == 200

    def test_people_get_a_line_a_word(self, model):
        lines = run("drift", model, "-k", 3, exit=0).out.splitlines()
        assert "step 100 (2019-01-01) to step 300 (2021-01-01)" in lines[0] and "moved beyond chance" in lines[0]
        assert len(lines) == 5 and lines[2].startswith("*") and f"{MOVED}: c" in lines[2] and " -> f" in lines[2]

    def test_without_halves_it_says_so(self, model, tmp_path):
        (tmp_path / "m").mkdir()
        for path in model.iterdir():
            if path.name != "history":
                (tmp_path / "m" / path.name).symlink_to(path)
        (tmp_path / "m/history").mkdir()
        for step in (100, 300):
            for ending in ("safetensors", "vocab.tsv"):
                (tmp_path / f"m/history/{step}.{ending}").symlink_to(model / f"history/{step}.{ending}")
        answer = json.loads(run("drift", tmp_path / "m", "--json", exit=0).out)
        assert answer["calibrated"] is False
        assert answer["moved"][0]["word"] == MOVED and answer["moved"][0]["alert"] is True
        (tmp_path / "m/history/200.safetensors").write_bytes(b"damaged")
        done = run("drift", tmp_path / "m", "--json", exit=0)
        assert json.loads(done.out) == answer and "200.safetensors" in done.err


class TestPaths:
    def test_a_word_is_followed_through_the_history(self, model):
        moved, stable = json.loads(run("drift", model, MOVED, "c50", "-k", 4, "--json", exit=0).out)
        assert [station["step"] for station in moved["path"]] == [100, 200, 300]
        for station, topic in zip(moved["path"], "ccf"):
            assert len(station["neighbours"]) == 4 and all(word[0] == topic for word in station["neighbours"]), station
        assert moved["path"][2]["cosine"] > 0.999 and moved["path"][2]["overlap"] == 1
        assert moved["path"][0]["cosine"] < stable["path"][0]["cosine"] - 0.2

    def test_a_word_that_came_later_has_no_count_before(self, model):
        path = json.loads(run("drift", model, "h7", "--json", exit=0).out)[0]["path"]
        assert [station["count"] > 0 for station in path] == [False, True, True]
        assert path[0]["cosine"] is None and path[0]["neighbours"] == []

    def test_an_unknown_word_is_named_and_the_others_answered(self, model):
        done = run("drift", model, "xyzzy", MOVED, exit=1)
        assert MOVED in done.out and "xyzzy" in done.err
        assert_one_line(done.err)


class TestGoingOn:
    def test_a_stream_that_goes_on_counts_its_steps_on(self, tmp_path):
        """What is measured and remembered after a restart comes after what was before it."""
        steps = []
        for turn in range(2):
            (tmp_path / f"text{turn}").write_text(topical_text(20_000, seed=turn))
            run("train", tmp_path / f"text{turn}", "--stream", "--out", tmp_path / "model", "--dim", 16,
                "--snapshot-every", 5_000, "--evaluate-every", 0, exit=0)
            lines = (tmp_path / "model" / "metrics.jsonl").read_text().splitlines()
            steps.append([json.loads(line)["step"] for line in lines])
        before, all_steps = steps
        assert before == sorted(before) and all_steps == sorted(all_steps), steps
        assert len(all_steps) > len(before) > 0 and all_steps[:len(before)] == before, steps
        assert all_steps[-1] > before[-1], steps


class TestMisuse:
    def test_a_model_without_history_says_what_to_do(self, trained):
        done = run("drift", trained, exit=1)
        assert "history" in done.err and "--stream" in done.err
        assert_one_line(done.err)

    @pytest.mark.parametrize("flags, code", [(["--from", "soon"], 2), (["--from", 300], 1), (["--from", 300, "--to", 100], 1)])
    def test_moments_that_cannot_be_are_refused(self, model, flags, code):
        done = run("drift", model, *flags, exit=code)
        assert flags[0] in done.err
        assert_one_line(done.err)
