"""The hybrid model from outside: words never seen, rare ones, going on, streams."""
import json
import shutil

import pytest
from support import (assert_one_line, go_back_to_the_middle, run, stem, tensor_shapes, text_of_endings, train,
                     tree, weights)

HYBRID = ["--model", "hybrid"]


def neighbours(model, *words):
    answers = json.loads(run("nearest", model, *words, "-k", 10, "--json", exit=0).out)
    return [(answer["seen"], [found["word"] for found in answer["neighbours"]]) for answer in answers]


def vector_lines(model, *words):
    return [line.split(" ", 1)[1] for line in run("vector", model, *words, exit=0).out.splitlines()]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hybrid")
    (folder / "text").write_text(text_of_endings())
    train(folder / "text", "--out", folder / "model", *HYBRID)
    return folder / "model"


class TestUnseenWords:
    def test_nearest_answers_by_spelling_and_says_so(self, model):
        (seen, found), (known, _) = neighbours(model, stem(4711) + "wards", stem(1) + "less")
        assert (seen, known) == (False, True)
        assert sum(word.endswith("wards") for word in found) >= 9

    def test_to_a_spelling_of_which_nothing_is_known_all_words_are_as_near(self, model):
        answer = json.loads(run("nearest", model, "🙂🙂", "-k", 3, "--json", exit=0).out)[0]
        assert [found["cosine"] for found in answer["neighbours"]] == [0, 0, 0]


class TestGoingOn:
    def test_a_stopped_run_ends_like_one_that_was_not(self, tmp_path):
        text = tmp_path / "text"
        text.write_text(text_of_endings(5_000))
        straight, stopped = tmp_path / "straight", tmp_path / "stopped"
        slow = [*HYBRID, "--kernel", "reference"]
        train(text, "--out", straight, *slow)
        train(text, "--out", stopped, *slow, "--checkpoint-every", "0.001")
        go_back_to_the_middle(stopped)
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
        for table in ("input", "output", "hybrid.duals"):
            assert after[table][0] == before[table][0] + 2, table
        assert neighbours(tmp_path / "model", "quokkaless")[0][0]

    def test_standard_input_is_learnt_in_one_pass(self, tmp_path):
        train("-", "--out", tmp_path / "model", *HYBRID, input=text_of_endings().encode())
        _, found = neighbours(tmp_path / "model", stem(4711) + "less")[0]
        assert sum(word.endswith("less") for word in found) >= 7

    def test_a_model_of_another_kind_is_refused(self, model):
        before = tree(model)
        assert_one_line(run("train", "/dev/null", "--out", model, "--model", "sgns", exit=1).err)
        assert tree(model) == before


class TestStreams:
    def test_a_stream_learns_spellings_and_goes_on(self, tmp_path):
        (tmp_path / "text").write_text(text_of_endings())
        train(tmp_path / "text", "--out", tmp_path / "model", *HYBRID, "--stream")
        _, found = neighbours(tmp_path / "model", stem(4711) + "less")[0]
        assert sum(word.endswith("less") for word in found) >= 7
        train(tmp_path / "text", "--out", tmp_path / "model", "--stream")
        assert "hybrid.ngrams" in tensor_shapes(tmp_path / "model")

    def test_words_that_lose_their_slots_leave_nothing_behind(self, tmp_path):
        text = text_of_endings(1500) + "\n".join(
            " ".join(stem(1000 + n % 90) + "ology" for n in range(k, k + 10)) for k in range(1500)) + "\n"
        (tmp_path / "text").write_text(text)
        train(tmp_path / "text", "--out", tmp_path / "model", *HYBRID, "--stream", "--vocab-max", 100,
              "--half-life", "5000")
        shapes = tensor_shapes(tmp_path / "model")
        assert shapes["input"][0] <= 100
        assert neighbours(tmp_path / "model", "unseenology")[0][0] is False
