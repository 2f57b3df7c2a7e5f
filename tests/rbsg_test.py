"""The character model from outside: training, words never seen, going on, streams, and what is refused."""
import json
import random
import shutil
import signal

import pytest
from support import (QUICK, TIMEOUT_S, assert_one_line, go_back_to_the_middle, newest, run, start, stem, tensor_shapes,
                     text_of_endings, topical_text, train, tree, wait_for, weights)

SMALL = ["--model", "rbsg", "--hidden", "32", "--char-dim", "8", "--batch", "128", "--lr", "0.01", "--sample", "0",
         "--kernel", "simd"]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("rbsg") / "text"
    path.write_text(text_of_endings(1500, letters=3, words=8))
    return path


@pytest.fixture(scope="module")
def model(text):
    out = text.parent / "model"
    train(text, "--out", out, *SMALL)
    return out


def nearest(directory, *words):
    return json.loads(run("nearest", directory, *words, "--json", exit=0).out)


def vector(directory, word):
    return [float(value) for value in run("vector", directory, word, exit=0).out.split(" ")[1:]]


class TestUnseenWords:
    def test_nearest_answers_by_spelling_and_says_so(self, model):
        answers = nearest(model, "zzqwards", stem(1, 3) + "less")
        assert [answer["seen"] for answer in answers] == [False, True]
        assert sum(found["word"].endswith("wards") for found in answers[0]["neighbours"]) >= 8

    def test_a_seen_words_vector_is_what_its_spelling_gives(self, model):
        word = stem(1, 3) + "less"
        assert vector(model, word) == pytest.approx(vector(model, word.upper()), abs=1e-5)

    def test_any_string_has_a_vector(self, model):
        for word in ("한국어", "ﷺ", "🦜🦜", "naïve", "x" * 5000, "-", "\u0301", "\ue000"):
            values = vector(model, word)
            assert len(values) == 16 and any(value != 0 for value in values), word

    def test_the_empty_word_is_an_error(self, model):
        for command in ("nearest", "vector"):
            assert_one_line(run(command, model, "", exit=2).err)

    def test_similarity_covers_every_pair(self, model, tmp_path):
        (tmp_path / "set.tsv").write_text("".join(f"{stem(i + 500, 3)}less\t{stem(i + 50, 3)}{end}\t{score}\n" for i in range(9)
                                                  for end, score in (("less", 9), ("wards", 1))))
        report = json.loads(run("eval", model, "--similarity", tmp_path / "set.tsv", "--json", exit=0).out)
        assert report["similarity"][0]["covered"] == 18
        assert report["similarity"][0]["spearman"] > 0.8

    def test_hangul_is_read_by_its_jamo(self, tmp_path):
        # The words of the two topics differ in their last consonant alone, which only jamo tell.
        first = [chr(0xAC00 + 28 * (7 * i % 399)) for i in range(60)]
        topics = [first, [chr(ord(syllable) + 4) for syllable in first]]
        draw = random.Random(2)
        (tmp_path / "text").write_text("\n".join(
            " ".join("가" + draw.choice(topics[topic]) for _ in range(8)) for topic in draw.choices([0, 1], k=1600)))
        train(tmp_path / "text", "--out", tmp_path / "m", *SMALL, "--tokenizer", "whitespace")
        unseen = chr(0xAC00 + 28 * 7 * 61 % (28 * 399) + 4)
        words = {"가" + syllable for syllable in topics[1]}
        found = nearest(tmp_path / "m", "가" + unseen)[0]["neighbours"]
        assert sum(each["word"] in words for each in found) >= 7


class TestCheckpoints:
    def test_holds_both_encoders_with_their_moments_and_the_words_vectors(self, model):
        shapes = tensor_shapes(model)
        for side in ("centre", "context"):
            assert shapes[f"rbsg.{side}.recurrent"] == [32, 128]
            assert shapes[f"rbsg.{side}.recurrent.adam.mean"] == [32, 128]
            assert shapes[f"rbsg.{side}.output"] == [32, 16]
        assert shapes["input"] == shapes["output"]
        assert (newest(model) / "rbsg.bin").exists()

    @pytest.mark.parametrize("cell", ["lstm", "gru"])
    def test_a_stopped_run_ends_like_one_that_was_not(self, tmp_path, cell):
        straight, stopped = tmp_path / "straight", tmp_path / "stopped"
        options = [*SMALL, "--cell", cell, "--batch", "2000"]
        text = tmp_path / "text"
        text.write_text(text_of_endings(4_000, letters=3, words=8))  # several pieces
        train(text, "--out", straight, *options)
        train(text, "--out", stopped, *options, "--checkpoint-every", "0.001")
        go_back_to_the_middle(stopped)
        assert weights(stopped) != weights(straight)
        train(text, "--out", stopped, *options)
        assert weights(stopped) == weights(straight)

    def test_new_text_adds_its_words_and_characters(self, model, tmp_path):
        shutil.copytree(model, tmp_path / "model")
        (tmp_path / "more").write_text("žluťoučký kůň\n" * 50)
        before = tensor_shapes(tmp_path / "model")
        train(tmp_path / "more", "--out", tmp_path / "model")
        after = tensor_shapes(tmp_path / "model")
        assert after["input"][0] == before["input"][0] + 2
        assert after["rbsg.centre.characters"][0] > before["rbsg.centre.characters"][0]
        assert nearest(tmp_path / "model", "kůň")[0]["seen"]

    def test_another_shape_than_the_directorys_is_refused(self, model):
        before = tree(model)
        for option in (["--hidden", 48], ["--char-dim", 9], ["--cell", "gru"], ["--model", "sgns"]):
            assert_one_line(run("train", "/dev/null", "--out", model, *option, exit=1).err)
        assert tree(model) == before

    def test_a_hidden_size_that_cannot_be_is_refused(self, text, tmp_path):
        done = run("train", text, "--out", tmp_path / "m", "--model", "rbsg", "--hidden", 40, exit=2)
        assert_one_line(done.err)
        assert "--hidden" in done.err

    def test_a_damaged_character_file_is_named(self, model, tmp_path):
        shutil.copytree(model, tmp_path / "model")
        path = newest(tmp_path / "model") / "rbsg.bin"
        path.write_bytes(path.read_bytes()[:-1])
        assert "rbsg.bin" in run("vector", tmp_path / "model", "a", exit=1).err

    def test_export_and_import_have_the_words_vectors(self, model, tmp_path):
        run("export", model, "--format", "word2vec", tmp_path / "out.txt", exit=0)
        run("import", tmp_path / "out.txt", "--out", tmp_path / "m", exit=0)
        word = stem(1, 3) + "less"
        assert vector(tmp_path / "m", word) == pytest.approx(vector(model, word), abs=1e-4)


class TestOptimizers:
    def test_each_goes_on_with_what_the_other_has_learnt(self, text, tmp_path):
        for first, then in (("adam", "muon"), ("muon", "adam")):
            out = tmp_path / first
            before = train(text, "--out", out, *SMALL, "--optimizer", first, "--epochs", 2)["loss"]
            after = train(text, "--out", out, *SMALL, "--optimizer", then, "--epochs", 2)["loss"]
            assert after < before + 0.02, (first, then)

    def test_muon_is_what_it_has_unless_adam_is_asked_for(self, text, tmp_path):
        for name, options in (("own", []), ("muon", ["--optimizer", "muon"]), ("adam", ["--optimizer", "adam"])):
            train(text, "--out", tmp_path / name, *SMALL, *options, "--threads", 1)
        own, muon, adam = (weights(tmp_path / name) for name in ("own", "muon", "adam"))
        assert own == muon != adam

    @pytest.mark.parametrize("options, says", [(["--model", "rbsg", "--optimizer", "adagrad"], "has muon or adam"),
                                               (["--model", "sgns", "--optimizer", "muon"], "is for --model rbsg")])
    def test_one_that_is_not_of_the_model_is_refused(self, text, tmp_path, options, says):
        done = run("train", text, "--out", tmp_path / "m", *options, exit=2)
        assert_one_line(done.err)
        assert says in done.err
        assert not (tmp_path / "m").exists()

    def test_so_it_is_where_the_directory_names_the_model(self, text, model, tmp_path):
        train(text, "--out", tmp_path / "words", *QUICK)
        assert "is for --model rbsg" in run("train", text, "--out", tmp_path / "words", "--optimizer", "muon", exit=1).err


class TestLoop:
    def test_says_which_kernel_ran(self, text, tmp_path):
        told = train(text, "--out", tmp_path / "m", *SMALL, "--kernel", "auto")
        assert told["model"] == "rbsg" and told["kernel"] in ("simd", "bf16", "amx", "amx+int8")
        assert told["pairs"] > 0 and told["updates_refused"] == 0

    def test_every_kernel_learns_the_same_loss(self, text, tmp_path):
        losses = [train(text, "--out", tmp_path / kernel, *SMALL, "--kernel", kernel)["loss"] for kernel in ("simd", "auto")]
        assert losses[0] == pytest.approx(losses[1], rel=0.05)

    def test_two_threads_compute_what_one_does(self, text, tmp_path):
        one = train(text, "--out", tmp_path / "one", *SMALL)["loss"]
        two = json.loads(run("train", text, "--out", tmp_path / "two", *QUICK, *SMALL, "--threads", "2", "--json",
                             exit=0).out)["loss"]
        assert one == pytest.approx(two, rel=0.02)

    def test_standard_input_is_learnt_in_one_pass(self, tmp_path):
        train("-", "--out", tmp_path / "m", *SMALL, input=text_of_endings(1500, letters=3, words=8).encode())
        found = nearest(tmp_path / "m", "zzqless")[0]["neighbours"]
        assert sum(each["word"].endswith("less") for each in found) >= 7

    def test_a_stream_is_learnt_and_goes_on(self, text, tmp_path):
        options = [*SMALL, "--stream", "--vocab-max", "100", "--replay-ratio", "2"]
        first = train(text, "--out", tmp_path / "m", *options)
        assert first["vocab"] == 100
        found = nearest(tmp_path / "m", "zzqless")[0]["neighbours"]
        assert sum(each["word"].endswith("less") for each in found) >= 7
        (tmp_path / "more").write_text(topical_text(3_000))
        second = train(tmp_path / "more", "--out", tmp_path / "m", *options)
        assert second["pairs"] > first["pairs"]

    def test_ctrl_c_saves_what_there_is(self, text, tmp_path):
        process = start("train", text, "--out", tmp_path / "m", *QUICK, *SMALL, "--epochs", "100000",
                        "--checkpoint-every", "0.1")
        wait_for((tmp_path / "m" / "latest").exists, "a checkpoint")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0, err
        assert len(vector(tmp_path / "m", stem(1, 3) + "less")) == 16
