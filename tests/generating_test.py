"""Models that make vectors of spellings: whatever queries, measures, exports and saves works with them, and words never
seen have an answer everywhere, which says that it is one."""
import json
import math
import shutil
import signal
import subprocess

import pytest
from support import (PROGRAM, TIMEOUT_S, assert_one_line, newest, run, start, stem, tensor_shapes,
                     text_of_endings, topical_text, train, vocabulary, wait_for, weights)

# The models, each with options for a quick training. What is added here has to pass everything below.
GENERATING = {
    "subword": ["--model", "subword", "--bucket", "5000"],
    "subword-jamo": ["--model", "subword", "--bucket", "5000", "--jamo"],
    "rbsg": ["--model", "rbsg", "--hidden", "32", "--char-dim", "8", "--batch", "128", "--lr", "0.01", "--sample", "0"],
    "hybrid": ["--model", "hybrid"],
}
ODD = ["x", "é", "여왕", "🙂🙂", "a" * 5000, " ", "\n", "don't", "</s>", "1984", "\u00ad", "ﬁ", "한"]
INVALID = [b"\xff", b"\xc3(", b"\xe2\x82", b"king\xf0\x9f"]


@pytest.fixture(scope="module", params=GENERATING)
def options(request):
    return GENERATING[request.param]


@pytest.fixture(scope="module")
def model(options, tmp_path_factory):
    folder = tmp_path_factory.mktemp("generating")
    (folder / "text").write_text(text_of_endings())
    train(folder / "text", "--out", folder / "model", *options)
    return folder / "model"


def answers_of(command, model, *words):
    return json.loads(run(command, model, *words, "--json", exit=0).out)


class TestQueries:
    def test_nearest_goes_by_spelling_and_says_so(self, model):
        unseen, seen = stem(4711) + "wards", stem(1) + "less"
        answers = answers_of("nearest", model, unseen, seen)
        assert [answer["seen"] for answer in answers] == [False, True]
        assert sum(found["word"].endswith("wards") for found in answers[0]["neighbours"]) >= 7
        assert "(unseen" in run("nearest", model, unseen, exit=0).out.splitlines()[0]
        assert "unseen" not in run("nearest", model, seen, exit=0).out

    def test_vector_has_a_line_each_and_names_the_unseen(self, model):
        unseen, seen = stem(4711) + "less", stem(1) + "less"
        done = run("vector", model, unseen, seen, exit=0)
        assert [line.split()[0] for line in done.out.splitlines()] == [unseen, seen]
        assert all(len(line.split()) == 17 for line in done.out.splitlines())
        assert_one_line(done.err)
        assert unseen in done.err and seen not in done.err
        assert [answer["seen"] for answer in answers_of("vector", model, unseen, seen)] == [False, True]

    def test_analogy_takes_unseen_words_and_names_them(self, model):
        unseen = stem(4711) + "less"
        answer = answers_of("analogy", model, stem(1) + "less", stem(1) + "wards", unseen)
        assert answer["unseen"] == [unseen]
        assert sum(found["word"].endswith("wards") for found in answer["answers"]) >= 5
        assert unseen in run("analogy", model, stem(1) + "less", stem(1) + "wards", unseen, exit=0).err

    def test_a_word_has_the_same_vector_each_time(self, model):
        unseen = stem(4711) + "less"
        assert answers_of("vector", model, unseen, unseen)[1] == answers_of("vector", model, unseen)[0]

    def test_every_string_has_an_answer(self, model):
        for command, field in (("vector", "vector"), ("nearest", "neighbours")):
            answers = answers_of(command, model, *ODD)
            assert [answer["word"] for answer in answers] == ODD
            assert all(answer[field] and not answer["seen"] for answer in answers)
        for answer in answers_of("vector", model, *ODD):
            assert all(map(math.isfinite, answer["vector"])) and any(answer["vector"])

    def test_bytes_that_are_no_text_have_one_too(self, model):
        for word in INVALID:
            for command in ("vector", "nearest"):
                done = subprocess.run([PROGRAM, command, str(model), word, "--json"], capture_output=True,
                                      timeout=TIMEOUT_S)
                assert done.returncode == 0, done.stderr
                answer = json.loads(done.stdout.decode())[0]  # UTF-8, with U+FFFD for what is none
                assert answer["seen"] is False and (answer.get("vector") or answer.get("neighbours"))

    def test_the_empty_string_is_an_error(self, model):
        for command in (["nearest", model, ""], ["vector", model, ""], ["analogy", model, "a", "b", ""]):
            done = run(*command, exit=2)
            assert_one_line(done.err)
            assert "empty" in done.err

    def test_capitals_are_folded_as_in_training(self, model):
        unseen = stem(4711) + "less"
        assert (answers_of("vector", model, unseen.upper())[0]["vector"] ==
                answers_of("vector", model, unseen)[0]["vector"])


class TestMeasures:
    def test_similarity_covers_every_pair(self, model, tmp_path):
        pairs = [(stem(i) + "less", stem(i + 9000) + ending, score)
                 for i in range(20) for ending, score in (("less", 9), ("wards", 1))] + [("x", "여왕", 0)]
        (tmp_path / "set.tsv").write_text("".join(f"{a}\t{b}\t{score}\n" for a, b, score in pairs))
        report = json.loads(run("eval", model, "--similarity", tmp_path / "set.tsv", "--json", exit=0).out)
        assert report["similarity"][0]["covered"] == len(pairs)
        assert report["similarity"][0]["spearman"] > 0.6

    def test_an_analogy_with_an_unseen_word_is_not_covered(self, model, tmp_path):
        words = [stem(1) + "less", stem(1) + "wards", stem(2) + "less", stem(2) + "wards"]
        (tmp_path / "set.txt").write_text(" ".join(words) + "\n" + " ".join([*words[:3], stem(4711) + "wards"]) + "\n")
        report = json.loads(run("eval", model, "--analogy", tmp_path / "set.txt", "--json", exit=0).out)
        assert (report["analogy"][0]["questions"], report["analogy"][0]["covered"]) == (2, 1)

    def test_held_out_loss_and_pip_are_measured(self, model, tmp_path):
        (tmp_path / "text").write_text(text_of_endings(300))
        report = json.loads(run("eval", model, "--text", tmp_path / "text", "--pip", "--json", exit=0).out)
        assert 0 < report["loss"] < 10
        assert report["pip"]["relative"] > 0


class TestFiles:
    @pytest.mark.parametrize("form", ["word2vec", "word2vec-bin", "glove", "npy", "safetensors", "projector"])
    def test_every_format_carries_the_vectors_that_queries_show(self, model, tmp_path, form):
        run("export", model, "--format", form, tmp_path / "out", exit=0)
        run("import", tmp_path / "out", "--out", tmp_path / "back", exit=0)
        word = stem(1) + "less"
        assert answers_of("vector", tmp_path / "back", word) == answers_of("vector", model, word)

    def test_training_goes_on_and_new_words_come_in(self, model, tmp_path):
        shutil.copytree(model, tmp_path / "model")
        (tmp_path / "more").write_text("zyzzyva quokka\n" * 50)
        assert not answers_of("nearest", tmp_path / "model", "quokka")[0]["seen"]
        train(tmp_path / "more", "--out", tmp_path / "model")
        assert answers_of("nearest", tmp_path / "model", "quokka")[0]["seen"]
        assert not answers_of("nearest", tmp_path / "model", "quokkas")[0]["seen"]

    def test_a_damaged_checkpoint_is_passed_over(self, options, tmp_path):
        (tmp_path / "text").write_text(text_of_endings(300))
        for _ in range(2):
            train(tmp_path / "text", "--out", tmp_path / "model", *options)
        path = newest(tmp_path / "model") / "model.safetensors"
        path.write_bytes(path.read_bytes()[:-9])
        done = run("nearest", tmp_path / "model", stem(4711) + "less", exit=0)
        assert "went back" in done.err

    def test_another_model_is_refused_with_both_names(self, model):
        done = run("train", "/dev/null", "--out", model, "--model", "cbow", exit=1)
        assert_one_line(done.err)
        assert "cbow" in done.err


class TestStreams:
    def test_a_stream_of_words_that_come_and_go_answers_for_unseen_ones(self, options, tmp_path):
        (tmp_path / "text").write_text(text_of_endings(6000))
        (tmp_path / "set.tsv").write_text("".join(f"{stem(i)}less\t{stem(i + 9000)}less\t{i}\n" for i in range(20)))
        train(tmp_path / "text", "--out", tmp_path / "model", *options, "--stream", "--vocab-max", 80, "--half-life",
              "20000", "--similarity", tmp_path / "set.tsv")
        assert len(vocabulary(tmp_path / "model")) == 80
        answer = answers_of("nearest", tmp_path / "model", stem(4711) + "less")[0]
        assert not answer["seen"]
        assert sum(found["word"].endswith("less") for found in answer["neighbours"]) >= 7
        line = json.loads((tmp_path / "model" / "metrics.jsonl").read_text().splitlines()[-1])
        assert line["vocab"]["evicted"] > 0
        assert line["similarity"]["set"] is not None

    def test_a_stream_goes_on_where_it_was(self, options, tmp_path):
        out = tmp_path / "model"
        (tmp_path / "text").write_text(text_of_endings(1500))
        arguments = [tmp_path / "text", "--out", out, *options, "--stream"]
        train(*arguments)
        shapes, before = tensor_shapes(out), weights(out)
        tokens = sum(count for _, count in vocabulary(out))
        train(*arguments)  # nothing new: every document was read
        assert sum(count for _, count in vocabulary(out)) == tokens
        assert tensor_shapes(out) == shapes
        assert len(weights(out)) == len(before)
        answer = answers_of("nearest", out, stem(4711) + "less")[0]
        assert sum(found["word"].endswith("less") for found in answer["neighbours"]) >= 7

    def test_standard_input_can_be_a_stream(self, options, tmp_path):
        train("-", "--out", tmp_path / "model", *options, "--stream", "--no-drift", input=text_of_endings().encode())
        answer = answers_of("nearest", tmp_path / "model", stem(4711) + "less")[0]
        assert sum(found["word"].endswith("less") for found in answer["neighbours"]) >= 7

    def test_a_stream_that_is_killed_goes_on_from_its_checkpoint(self, options, tmp_path):
        (tmp_path / "text").write_text(text_of_endings(1000))
        arguments = ["train", f"tail:{tmp_path}/text", "--out", tmp_path / "model", *options, "--dim", 16, "--min-count",
                     1, "--checkpoint-every", "0.2"]
        process = start(*arguments)
        wait_for(lambda: (tmp_path / "model" / "latest").exists() or process.poll() is not None, "a checkpoint")
        assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGKILL)
        process.wait()
        process = start(*arguments)
        with open(tmp_path / "text", "a") as more:
            more.write("zyzzyva quokka\n" * 50)
        is_known = lambda: answers_of("nearest", tmp_path / "model", "quokka")[0]["seen"]
        wait_for(lambda: process.poll() is not None or is_known(), "the new words")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0, err
        counts = dict(vocabulary(tmp_path / "model"))
        assert counts["quokka"] == 50
        assert sum(counts.values()) == 1000 * 10 + 100

    def test_a_model_of_files_goes_on_as_a_stream(self, model, tmp_path):
        shutil.copytree(model, tmp_path / "model")
        (tmp_path / "more").write_text("zyzzyva quokka\n" * 50)
        train(tmp_path / "more", "--out", tmp_path / "model", "--stream")
        assert answers_of("nearest", tmp_path / "model", "quokka")[0]["seen"]


class TestOtherModels:
    def test_a_model_that_makes_none_says_that_it_does_not_know(self, tmp_path):
        (tmp_path / "text").write_text(topical_text(2_000))
        train(tmp_path / "text", "--out", tmp_path / "model")
        for command in ("nearest", "vector"):
            done = run(command, tmp_path / "model", "neverseen", exit=1)
            assert_one_line(done.err)
            assert "neverseen" in done.err
