"""The hybrid model from outside: words never seen, rare ones, going on, streams."""
import json
import random
import shutil

import pytest
from support import assert_one_line, run, tensor_shapes, train, tree, weights

HYBRID = ["--model", "hybrid"]
ENDINGS = ["ation", "less", "wards"]


def stem(number):
    draw = random.Random(number)
    return "".join(draw.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(5))


def morphological_text(sentences=3000):
    """Words of one ending come together; their stems say nothing."""
    draw = random.Random(1)
    return "\n".join(" ".join(stem(draw.randrange(40)) + ending for _ in range(10))
                     for ending in draw.choices(ENDINGS, k=sentences)) + "\n"


def neighbours(model, *words):
    answers = json.loads(run("nearest", model, *words, "-k", 10, "--json", exit=0).out)
    return [(answer["seen"], [found["word"] for found in answer["neighbours"]]) for answer in answers]


def vector_lines(model, *words):
    return [line.split(" ", 1)[1] for line in run("vector", model, *words, exit=0).out.splitlines()]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hybrid")
    (folder / "text").write_text(morphological_text())
    train(folder / "text", "--out", folder / "model", *HYBRID)
    return folder / "model"


class TestUnseenWords:
    def test_nearest_answers_by_spelling_and_says_so(self, model):
        (seen, found), (known, _) = neighbours(model, stem(4711) + "wards", stem(1) + "less")
        assert (seen, known) == (False, True)
        assert sum(word.endswith("wards") for word in found) >= 9

    def test_any_spelling_has_a_vector_but_the_empty_one(self, model):
        for word in ("한국어", "x", "naïve", "q" * 300):
            assert any(float(value) != 0 for value in vector_lines(model, word)[0].split())
        assert_one_line(run("vector", model, "", exit=1).err)

    def test_capitals_are_folded_as_in_training(self, model):
        unseen = stem(4711) + "less"
        assert vector_lines(model, unseen) == vector_lines(model, unseen.upper())

    def test_similarity_covers_every_pair(self, model, tmp_path):
        pairs = [(stem(i) + "less", stem(i + 9000) + ending, score)
                 for i in range(20) for ending, score in (("less", 9), ("wards", 1))]
        (tmp_path / "set.tsv").write_text("".join(f"{a}\t{b}\t{score}\n" for a, b, score in pairs))
        report = json.loads(run("eval", model, "--similarity", tmp_path / "set.tsv", "--json", exit=0).out)
        assert report["similarity"][0]["covered"] == len(pairs)
        assert report["similarity"][0]["spearman"] > 0.8


class TestGoingOn:
    def test_a_stopped_run_ends_like_one_that_was_not(self, tmp_path):
        text = tmp_path / "text"
        text.write_text(morphological_text(5_000))
        straight, stopped = tmp_path / "straight", tmp_path / "stopped"
        slow = [*HYBRID, "--kernel", "reference"]
        train(text, "--out", straight, *slow)
        train(text, "--out", stopped, *slow, "--checkpoint-every", "0.001")
        saved = [path for path in stopped.iterdir() if path.name.isdigit()]
        middle, last = sorted(saved, key=lambda path: int(path.name))
        shutil.rmtree(last)
        (stopped / "latest").write_text(middle.name + "\n")
        assert weights(stopped) != weights(straight)
        train(text, "--out", stopped, *slow)
        assert weights(stopped) == weights(straight)
        assert vector_lines(stopped, "unseenwards") == vector_lines(straight, "unseenwards")

    def test_new_text_adds_its_words(self, model, tmp_path):
        shutil.copytree(model, tmp_path / "model")
        (tmp_path / "more").write_text("zyzzyva quokkaless\n" * 50)
        before = tensor_shapes(tmp_path / "model")
        train(tmp_path / "more", "--out", tmp_path / "model")
        after = tensor_shapes(tmp_path / "model")
        for table in ("input", "output", "hybrid.words", "hybrid.duals"):
            assert after[table][0] == before[table][0] + 2, table
        assert neighbours(tmp_path / "model", "quokkaless")[0][0]

    def test_standard_input_is_learnt_in_one_pass(self, tmp_path):
        train("-", "--out", tmp_path / "model", *HYBRID, input=morphological_text().encode())
        _, found = neighbours(tmp_path / "model", stem(4711) + "less")[0]
        assert sum(word.endswith("less") for word in found) >= 7

    def test_a_model_of_another_kind_is_refused(self, model):
        before = tree(model)
        assert_one_line(run("train", "/dev/null", "--out", model, "--model", "sgns", exit=1).err)
        assert tree(model) == before


class TestStreams:
    def test_a_stream_is_distilled_and_goes_on(self, tmp_path):
        (tmp_path / "text").write_text(morphological_text())
        train(tmp_path / "text", "--out", tmp_path / "model", *HYBRID, "--stream")
        _, found = neighbours(tmp_path / "model", stem(4711) + "less")[0]
        assert sum(word.endswith("less") for word in found) >= 7
        train(tmp_path / "text", "--out", tmp_path / "model", "--stream")
        assert "hybrid.ngrams" in tensor_shapes(tmp_path / "model")

    def test_words_that_lose_their_slots_leave_nothing_behind(self, tmp_path):
        text = morphological_text(1500) + "\n".join(
            " ".join(stem(1000 + n % 90) + "ology" for n in range(k, k + 10)) for k in range(1500)) + "\n"
        (tmp_path / "text").write_text(text)
        train(tmp_path / "text", "--out", tmp_path / "model", *HYBRID, "--stream", "--vocab-max", 100,
              "--half-life", "5000")
        shapes = tensor_shapes(tmp_path / "model")
        assert shapes["input"][0] <= 100
        assert neighbours(tmp_path / "model", "unseenology")[0][0] is False
