"""The loop: what it prints, that it repeats itself, that it goes on where it stopped."""
import gzip
import itertools
import json
import random
import shutil
import signal
import time

import pytest
from support import (QUICK, SANITIZED, TIMEOUT_S, assert_one_line, await_handlers, newest, run, start, tensor_shapes, topical_text,
                     train, tree, vocabulary, wait_for, weights)


class TestJson:
    def test_the_object_has_the_promised_fields(self, text, tmp_path):
        result = train(text, "--out", tmp_path / "m")
        for name in ["tokens", "pairs", "seconds", "tokens_per_s", "pairs_per_s", "loss", "vocab", "dim", "rss_mb"]:
            assert isinstance(result[name], (int, float)) and result[name] > 0, name
        assert result["tokens"] == 20_000 // 12 * 12
        assert result["vocab"] == 120 and result["dim"] == 16 and result["stopped"] is False
        assert result["kernel"] and result["model"] == "sgns"

    def test_nothing_else_is_on_stdout(self, text, tmp_path):
        done = run("train", text, "--out", tmp_path / "m", *QUICK, "--json", exit=0)
        assert done.out.count("\n") == 1 and json.loads(done.out)

    def test_the_directory_is_a_checkpoint(self, text, tmp_path):
        train(text, "--out", tmp_path / "m")
        names = {path.name for path in newest(tmp_path / "m").iterdir()}
        assert {"model.safetensors", "vocab.tsv", "state.json", "cursors.json"} <= names
        assert tensor_shapes(tmp_path / "m")["input"] == tensor_shapes(tmp_path / "m")["output"] == [120, 16]
        assert json.loads((newest(tmp_path / "m") / "state.json").read_text())

    @pytest.mark.parametrize("model", ["sgns", "cbow"])
    @pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adam"])
    def test_the_loss_falls(self, text, tmp_path, model, optimizer):
        def loss(epochs):
            out = tmp_path / str(epochs)
            done = run("train", text, "--out", out, "--model", model, "--optimizer", optimizer, "--dim", 16, "--threads", 1,
                       "--min-count", 1, "--sample", 0, "--epochs", epochs, "--json", exit=0)
            return json.loads(done.out)["loss"]
        assert loss(8) < loss(1)

    @pytest.mark.parametrize("dim", [1, 3, 17, 100])
    def test_any_dim_is_learned(self, text, tmp_path, dim):
        done = run("train", text, "--out", tmp_path / "m", "--dim", dim, "--json", exit=0)
        assert json.loads(done.out)["dim"] == dim and tensor_shapes(tmp_path / "m")["input"][1] == dim


class TestRepeatable:
    @pytest.mark.parametrize("model", ["sgns", "cbow"])
    def test_one_thread_and_one_seed_give_one_result(self, text, tmp_path, model):
        for name in "ab":
            train(text, "--out", tmp_path / name, "--model", model, "--seed", 7)
        assert weights(tmp_path / "a") == weights(tmp_path / "b")

    def test_another_seed_gives_another(self, text, tmp_path):
        train(text, "--out", tmp_path / "a", "--seed", 7)
        train(text, "--out", tmp_path / "b", "--seed", 8)
        assert weights(tmp_path / "a") != weights(tmp_path / "b")


def interrupted(args, out, wait_s, when=signal.SIGINT):
    """Starts a training and stops it `wait_s` after it has begun; gives its JSON."""
    process = start("train", *args, "--out", out)
    await_handlers(process)
    time.sleep(wait_s)
    process.send_signal(when)
    stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, stderr.decode()
    return json.loads(stdout)


class TestResume:
    @pytest.mark.parametrize("model", ["sgns", "cbow"])
    def test_an_interrupted_run_ends_as_an_uninterrupted_one(self, tmp_path, model):
        text = tmp_path / "text.txt"
        text.write_text(topical_text(100_000))
        for epochs in [20, 80, 320] if SANITIZED else [60, 240, 960]:  # a run that is over too early is made longer
            args = [text, "--model", model, "--dim", 32, "--threads", 1, "--min-count", 1, "--epochs", epochs, "--json"]
            stops, part = 0, {"stopped": True}
            while part["stopped"] and stops < 6:
                part = interrupted(args, tmp_path / "parts", 2.0 if SANITIZED else 0.3)
                stops += part["stopped"]
            if stops > 0:
                break
            shutil.rmtree(tmp_path / "parts")
        whole = json.loads(run("train", *args, "--out", tmp_path / "whole", exit=0).out)
        if part["stopped"]:
            part = json.loads(run("train", *args, "--out", tmp_path / "parts", exit=0).out)
        assert stops >= 1 and part["stopped"] is False and part["tokens"] == whole["tokens"]
        assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
        assert vocabulary(tmp_path / "parts") == vocabulary(tmp_path / "whole")
        assert whole["vocab"] == 120

    def test_another_dim_is_refused_with_both_and_nothing_changes(self, text, tmp_path):
        train(text, "--out", tmp_path / "m")
        before = tree(tmp_path / "m")
        done = run("train", text, "--out", tmp_path / "m", "--dim", "24", "--min-count", 1, exit=1)
        assert "16" in done.err and "24" in done.err
        assert tree(tmp_path / "m") == before

    def test_another_model_is_refused_with_both_and_nothing_changes(self, text, tmp_path):
        train(text, "--out", tmp_path / "m")
        before = tree(tmp_path / "m")
        done = run("train", text, "--out", tmp_path / "m", *QUICK, "--model", "cbow", exit=1)
        assert "sgns" in done.err and "cbow" in done.err
        assert tree(tmp_path / "m") == before

    @pytest.mark.parametrize("first, then, made, makes", [
        (["--keep-case"], [], "with --keep-case", "without --keep-case"),
        ([], ["--stem", "english"], "without --stem", "with --stem english"),
        ([], ["--tokenizer", "whitespace", "--stream"], "with --tokenizer words", "with --tokenizer whitespace")])
    def test_words_made_in_another_way_are_refused_with_both(self, text, tmp_path, first, then, made, makes):
        train(text, "--out", tmp_path / "m", *first)
        before = tree(tmp_path / "m")
        done = run("train", text, "--out", tmp_path / "m", *then, exit=1)
        assert made in done.err and makes in done.err
        assert tree(tmp_path / "m") == before

    def test_without_dim_the_model_s_own_is_kept(self, text, tmp_path):
        train(text, "--out", tmp_path / "m")
        (tmp_path / "more.txt").write_text(topical_text(5_000, seed=2))
        done = run("train", tmp_path / "more.txt", "--out", tmp_path / "m", "--json", exit=0)
        assert json.loads(done.out)["dim"] == 16


class TestContinue:
    def test_new_text_admits_new_words_and_keeps_the_old(self, text, tmp_path):
        train(text, "--out", tmp_path / "m")
        before = dict(vocabulary(tmp_path / "m"))
        (tmp_path / "more.txt").write_text("newcomer arrives with aaax\n" * 500)
        train(tmp_path / "more.txt", "--out", tmp_path / "m")
        after = dict(vocabulary(tmp_path / "m"))
        assert set(after) == set(before) | {"newcomer", "arrives", "with"}
        assert after["aaax"] == before["aaax"] + 500
        found = json.loads(run("nearest", tmp_path / "m", "newcomer", "--json", exit=0).out)
        assert found[0]["seen"] is True

    def test_the_vectors_of_old_words_are_where_training_starts(self, text, tmp_path):
        train(text, "--out", tmp_path / "m", "--epochs", 3)
        old = run("vector", tmp_path / "m", "dabx", exit=0).out
        (tmp_path / "more.txt").write_text("zoo zebra\n" * 50)
        train(tmp_path / "more.txt", "--out", tmp_path / "m")
        new = run("vector", tmp_path / "m", "dabx", exit=0).out
        assert old == new  # a word the new text lacks is no centre; as input row it stays as it was

    @pytest.mark.parametrize("first, second", itertools.permutations(["file", "pipe", "stream"], 2))
    def test_files_pipes_and_streams_go_on_from_each_other(self, text, tmp_path, first, second):
        ways = {"file": ([text], None), "pipe": (["-"], text.read_bytes()), "stream": ([text, "--stream"], None)}
        for args, piped in (ways[first], ways[second]):
            train(*args, "--out", tmp_path / "m", input=piped)
        after = dict(vocabulary(tmp_path / "m"))
        assert len(after) == 120 and after["aaax"] == 2 * text.read_text().split().count("aaax")

    @pytest.mark.parametrize("model", ["sgns", "subword", "hybrid", "glove"])
    def test_a_file_adds_to_the_words_and_rows_of_a_stream(self, text, tmp_path, model):
        train(text, "--stream", "--out", tmp_path / "m", "--model", model)
        before = vocabulary(tmp_path / "m")
        old = run("vector", tmp_path / "m", "dabx", exit=0).out
        (tmp_path / "more.txt").write_text("zoo zebra\n" * 50)
        train(tmp_path / "more.txt", "--out", tmp_path / "m")
        assert vocabulary(tmp_path / "m") == [*before, ("zebra", 50), ("zoo", 50)]
        if model in ("sgns", "glove"):  # the others make something of each word's spelling, too
            assert run("vector", tmp_path / "m", "dabx", exit=0).out == old


class TestStreamsThatLearnNothing:
    @pytest.mark.parametrize("line, options, reasons", [
        ("the cat sat on the mat", ["--min-count", 100_000], ["no word 100000 times", "tokens: 300", "--min-count 1"]),
        ("the cat sat on the mat", ["--language", "ko"], ["in other languages: 1", "another --language"]),
        ("  ", [], ["no word 3 times", "tokens: 0", "more text"]),
    ])
    def test_fail_and_say_why_when_they_have_ended(self, tmp_path, line, options, reasons):
        (tmp_path / "text.txt").write_text((line + "\n") * 50)
        done = run("train", tmp_path / "text.txt", "--stream", "--out", tmp_path / "m", *options, exit=1)
        assert_one_line(done.err)
        for reason in ["documents read here: 1", *reasons]:
            assert reason in done.err
        assert done.out == "" and not (tmp_path / "m" / "latest").exists()

    def test_are_no_failure_when_they_were_stopped(self, tmp_path):
        (tmp_path / "log.txt").write_text("")
        process = start("train", f"tail:{tmp_path}/log.txt", "--out", tmp_path / "m", "--json")
        await_handlers(process)
        wait_for((tmp_path / "m").exists, "training to begin")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0 and json.loads(stdout)["stopped"] is True, stderr.decode()

    def test_are_no_failure_where_a_model_is(self, text, tmp_path):
        train(text, "--out", tmp_path / "m")
        (tmp_path / "blank.txt").write_text(" \n")
        assert train(tmp_path / "blank.txt", "--stream", "--out", tmp_path / "m")["vocab"] == 120


class TestTextThatIsCutShort:
    SAVED = "what was learnt before is saved"

    def learn(self, way, data, tmp_path):
        """The error that training ends with, and whether there are words in the directory then."""
        (tmp_path / "cut.gz").write_bytes(data)
        args, piped = (["-"], data) if way == "pipe" else ([tmp_path / "cut.gz", "--stream"], None)
        done = run("train", *args, "--out", tmp_path / "m", *QUICK, input=piped, exit=1)
        assert_one_line(done.err)
        return done.err, (tmp_path / "m" / "latest").exists() and vocabulary(tmp_path / "m") != []

    @pytest.mark.parametrize("way", ["pipe", "stream"])
    def test_is_learnt_from_as_far_as_it_goes(self, tmp_path, way):
        data = gzip.compress(topical_text(200_000).encode())
        error, has_words = self.learn(way, data[:-100], tmp_path)
        assert self.SAVED in error and has_words

    @pytest.mark.parametrize("way", ["pipe", "stream"])
    def test_is_not_said_to_be_saved_when_nothing_was_read(self, tmp_path, way):
        error, has_words = self.learn(way, gzip.compress(topical_text(1000).encode())[:40], tmp_path)
        assert "cut.gz" in error or "-: " in error
        assert self.SAVED not in error and not has_words


class TestMemory:
    def test_memory_is_bounded_by_tables_vocabulary_and_150_mb(self, tmp_path):
        if SANITIZED:
            pytest.skip("sanitizers keep their own memory beside the program's")
        draw = random.Random(1)
        words = [f"word{i}" for i in range(50_000)]
        with gzip.open(tmp_path / "text.gz", "wt", compresslevel=1) as out:
            for _ in range(40):
                out.write("\n".join(" ".join(draw.choices(words, k=25)) for _ in range(2000)) + "\n")
        done = run("train", tmp_path / "text.gz", "--out", tmp_path / "m", "--dim", 100, "--threads", 2, "--min-count", 1,
                   "--json", exit=0)
        result = json.loads(done.out)
        padded = 112
        tables_mb = 2 * result["vocab"] * padded * 4 / 2**20
        vocabulary_mb = result["vocab"] * 100 / 2**20
        assert result["vocab"] == 50_000 and result["tokens"] == 2_000_000
        assert result["rss_mb"] <= tables_mb + vocabulary_mb + 150
