"""The glove model from outside: training, queries, going on, bounded memory, streams."""
import json
import random
import shutil
import signal

import pytest
from support import (QUICK, TIMEOUT_S, assert_one_line, newest, run, start, tensor_shapes, tree, wait_for, weights, wide_text,
                     words_of_topic)

GLOVE = ["--model", "glove", "--epochs", "15"]


def train(*args, exit=0, **options):
    """Quickly, unless the arguments say otherwise; gives the object it printed."""
    return json.loads(run("train", *QUICK, *args, "--json", exit=exit, **options).out)


def mingled_text(tokens, seed=1, topics=4):
    """Sentences of one topic each with a fifth of strangers: GloVe learns from ratios of counts, and nothing from pairs
    that never meet."""
    draw = random.Random(seed)
    weights_of_words = [1 / (rank + 2) for rank in range(30)]
    topic_of = lambda topic: topic if draw.random() < 0.8 else draw.randrange(topics)
    return "".join(" ".join(draw.choices(words_of_topic(topic_of(topic)), weights_of_words)[0] for _ in range(12)) + "\n"
                   for topic in draw.choices(range(topics), k=tokens // 12))


@pytest.fixture(scope="module")
def topical(tmp_path_factory):
    path = tmp_path_factory.mktemp("glove") / "text"
    path.write_text(mingled_text(60_000))
    return path


@pytest.fixture(scope="module")
def model(topical):
    train(topical, "--out", topical.parent / "model", *GLOVE)
    return topical.parent / "model"


def steps(directory):
    """Tiles trained on, by the newest checkpoint. Checkpoints come and go meanwhile."""
    try:
        return int(newest(directory).name)
    except OSError:
        return 0


def of_the_same_topic(directory, word):
    answer = json.loads(run("nearest", directory, word, "-k", 10, "--json", exit=0).out)[0]
    return sum(found["word"][0] == word[0] for found in answer["neighbours"])


class TestTraining:
    def test_words_of_a_topic_are_neighbours(self, model):
        assert all(of_the_same_topic(model, word) >= 9 for word in ("aaax", "babx", "cacx", "dadx"))

    def test_the_result_tells_cells_and_their_mean_cost(self, topical, tmp_path):
        one = train(topical, "--out", tmp_path / "one", "--model", "glove")
        many = train(topical, "--out", tmp_path / "many", *GLOVE)
        assert many["model"] == "glove" and many["kernel"] == "simd" and many["epochs"] == 15
        assert many["pairs"] == 15 * one["pairs"] and one["pairs"] > 3_000
        assert 0 < many["loss"] < one["loss"] / 5
        assert many["lr"] == 0.05

    def test_an_iteration_over_the_cells_counts_as_one_over_the_text(self, topical, tmp_path):
        for epochs in (1, 4):
            done = train(topical, "--out", tmp_path / str(epochs), "--model", "glove", "--epochs", epochs)
            assert done["tokens"] == epochs * 60_000
            assert done["tokens_per_s"] == pytest.approx(done["tokens"] / done["seconds"], rel=0.02)

    def test_fifteen_iterations_are_the_default(self, topical, tmp_path):
        done = run("train", topical, "--out", tmp_path / "m", "--model", "glove", "--dim", 8, "--json", exit=0)
        assert json.loads(done.out)["epochs"] == 15

    def test_vectors_are_the_sums_and_the_rows_are_kept_beside_them(self, model):
        shapes = tensor_shapes(model)
        assert shapes["input"] == shapes["glove.words"] == shapes["glove.contexts"] == [120, 16]
        assert shapes["glove.words.sums"] == [120, 16] and shapes["glove.contexts.biases"] == [120, 2]
        assert "output" not in shapes

    def test_two_threads_learn_the_same_topics(self, topical, tmp_path):
        run("train", topical, "--out", tmp_path / "m", *GLOVE, "--dim", 16, "--threads", 2, exit=0)
        assert of_the_same_topic(tmp_path / "m", "aaax") >= 9

    def test_weighting_options_change_the_cost(self, topical, tmp_path):
        costs = {train(topical, "--out", tmp_path / str(i), "--model", "glove", *options)["loss"]
                 for i, options in enumerate(([], ["--x-max", 10], ["--alpha", 0.5], ["--window", 2]))}
        assert len(costs) == 4

    def test_little_memory_gives_the_same_model(self, tmp_path):
        (tmp_path / "text").write_text(wide_text(60_000, 3_000))
        for out, memory in (("large", 1024), ("small", 1)):
            train(tmp_path / "text", "--out", tmp_path / out, "--model", "glove", "--memory", memory, "--window", 10)
        assert weights(tmp_path / "small") == weights(tmp_path / "large")
        assert not list((tmp_path / "small").glob(".temporary*"))


class TestQueries:
    def test_everything_that_reads_a_model_reads_this_one(self, model, topical, tmp_path):
        run("vector", model, "aaax", exit=0)
        run("analogy", model, "aaax", "aabx", "baax", exit=0)
        (tmp_path / "set.tsv").write_text("aaax\taabx\t9\naaax\tbaax\t1\nbaax\tbabx\t8\ncaax\tdaax\t2\n")
        report = json.loads(run("eval", model, "--similarity", tmp_path / "set.tsv", "--json", exit=0).out)
        assert report["similarity"][0]["spearman"] > 0.5

    def test_the_glove_format_goes_out_and_comes_back(self, model, tmp_path):
        run("export", model, "--format", "glove", tmp_path / "vectors.txt", exit=0)
        run("import", tmp_path / "vectors.txt", "--out", tmp_path / "back", exit=0)
        assert run("vector", model, "aaax", exit=0).out == run("vector", tmp_path / "back", "aaax", exit=0).out


class TestGoingOn:
    def test_a_stopped_run_ends_like_one_that_was_not(self, tmp_path):
        text = tmp_path / "text"
        text.write_text(wide_text(60_000, 3_000))
        straight, stopped = tmp_path / "straight", tmp_path / "stopped"
        slow = ["--model", "glove", "--epochs", 2, "--kernel", "reference"]
        train(text, "--out", straight, *slow)
        train(text, "--out", stopped, *slow, "--checkpoint-every", "0.001")
        # Back to the checkpoint before the last: what a kill in the middle would have left behind.
        saved = [path for path in stopped.iterdir() if path.name.isdigit()]
        middle, last = sorted(saved, key=lambda path: int(path.name))
        shutil.rmtree(last)
        (stopped / "latest").write_text(middle.name + "\n")
        assert weights(stopped) != weights(straight)
        result = train(text, "--out", stopped, *slow)
        assert weights(stopped) == weights(straight)
        assert result["pairs"] % 2 == 0 and not any("changed" in note for note in result["notes"])

    def test_ctrl_c_saves_and_the_run_goes_on(self, topical, tmp_path):
        endless = ["train", topical, "--out", tmp_path / "m", "--model", "glove", "--dim", 16, "--epochs", 1_000_000,
                   "--checkpoint-every", "0.1"]
        process = start(*endless, "--json")
        wait_for(lambda: steps(tmp_path / "m") > 2_000, "many iterations")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0, stderr.decode()
        assert json.loads(stdout)["stopped"] is True
        assert of_the_same_topic(tmp_path / "m", "aaax") >= 9
        before = steps(tmp_path / "m")
        again = start(*endless, "--json")
        wait_for(lambda: steps(tmp_path / "m") > before, "more of them")
        again.send_signal(signal.SIGINT)
        assert json.loads(again.communicate(timeout=TIMEOUT_S)[0])["pairs"] > json.loads(stdout)["pairs"]

    def test_text_that_changed_meanwhile_is_said(self, tmp_path):
        text = tmp_path / "text"
        text.write_text(wide_text(60_000, 3_000))
        slow = ["--model", "glove", "--epochs", 2, "--kernel", "reference"]
        train(text, "--out", tmp_path / "m", *slow, "--checkpoint-every", "0.001")
        saved = sorted((path for path in (tmp_path / "m").iterdir() if path.name.isdigit()),
                       key=lambda path: int(path.name))
        shutil.rmtree(saved[-1])
        text.write_text(wide_text(60_000, 3_000, seed=2))
        assert any("has changed" in note for note in train(text, "--out", tmp_path / "m", *slow)["notes"])

    def test_new_text_adds_its_words(self, model, tmp_path):
        shutil.copytree(model, tmp_path / "model")
        (tmp_path / "more").write_text("zyzzyva quokka wombat\n" * 50)
        train(tmp_path / "more", "--out", tmp_path / "model")
        shapes = tensor_shapes(tmp_path / "model")
        assert shapes["input"][0] == shapes["glove.contexts.sums"][0] == 123
        assert of_the_same_topic(tmp_path / "model", "aaax") >= 9

    def test_a_missing_table_is_damage(self, model, tmp_path):
        """The model of a directory that says glove and has the tables of another."""
        (tmp_path / "text").write_text(mingled_text(2_000))
        train(tmp_path / "text", "--out", tmp_path / "m", "--model", "sgns")
        before = tree(tmp_path / "m")
        done = run("train", tmp_path / "text", "--out", tmp_path / "m", "--model", "glove", exit=1)
        assert_one_line(done.err)
        assert "sgns" in done.err and tree(tmp_path / "m") == before


class TestStreams:
    def test_standard_input_is_learnt_in_one_pass(self, tmp_path):
        result = train("-", "--out", tmp_path / "m", "--model", "glove", input=mingled_text(60_000).encode())
        assert result["pairs"] > 60_000
        assert of_the_same_topic(tmp_path / "m", "aaax") >= 9
        assert (newest(tmp_path / "m") / "glove.bin").stat().st_size > 16 * 1_000

    def test_a_stream_is_learnt_through_replay(self, topical, tmp_path):
        run("train", topical, "--out", tmp_path / "m", "--model", "glove", "--stream", "--dim", 16, "--threads", 1,
            "--half-life", "30000", "--memory", 1, exit=0)
        assert of_the_same_topic(tmp_path / "m", "aaax") >= 9

    def test_a_stream_goes_on_with_its_cells(self, topical, tmp_path):
        (tmp_path / "more").write_text(mingled_text(5_000, seed=2))
        stream = ["--out", tmp_path / "m", "--stream", "--dim", 16, "--threads", 1, "--json"]
        first = json.loads(run("train", topical, *stream, "--model", "glove", exit=0).out)
        cells = (newest(tmp_path / "m") / "glove.bin").stat().st_size
        second = json.loads(run("train", tmp_path / "more", *stream, exit=0).out)
        assert (newest(tmp_path / "m") / "glove.bin").stat().st_size >= cells
        assert second["loss"] < first["loss"]

    def test_words_that_lose_their_slots_take_their_cells_along(self, tmp_path):
        lines = "".join(f"old{i % 20} old{(i + 1) % 20} old{(i + 7) % 20}\n" for i in range(2_000))
        later = "".join(f"new{i % 20} new{(i + 1) % 20} new{(i + 7) % 20}\n" for i in range(8_000))
        (tmp_path / "text").write_text(lines + later)
        run("train", tmp_path / "text", "--out", tmp_path / "m", "--model", "glove", "--dim", 8, "--threads", 1,
            "--vocab-max", 20, "--half-life", "2000", exit=0)
        assert run("vector", tmp_path / "m", "new3", exit=0).out
        assert run("vector", tmp_path / "m", "old3").returncode == 1


class TestBadOptions:
    @pytest.mark.parametrize("options, says", [(["--optimizer", "adam"], "adam"), (["--kernel", "bf16"], "bf16"),
                                               (["--vocab-max", 20_000_000], "--vocab-max")])
    def test_what_glove_does_not_have_is_refused(self, topical, tmp_path, options, says):
        done = run("train", topical, "--out", tmp_path / "m", "--model", "glove", *options, exit=2)
        assert_one_line(done.err)
        assert says in done.err

    @pytest.mark.parametrize("options, says", [(["--optimizer", "adam"], "adam"), (["--kernel", "bf16"], "bf16"),
                                               (["--vocab-max", 20_000_000], "--vocab-max")])
    def test_and_of_a_model_that_is_continued(self, model, topical, options, says):
        before = tree(model)
        done = run("train", topical, "--out", model, *options, exit=1)
        assert_one_line(done.err)
        assert says in done.err
        assert tree(model) == before

    @pytest.mark.parametrize("options", [["--x-max", "0"], ["--x-max", "nan"], ["--alpha", "-1"], ["--memory", "0"]])
    def test_values_outside_their_range_are_misuse(self, topical, tmp_path, options):
        assert run("train", topical, "--out", tmp_path / "m", "--model", "glove", *options).returncode == 2

    def test_text_without_any_pair_is_an_error(self, tmp_path):
        (tmp_path / "text").write_text("one\ntwo\nthree\n")
        done = run("train", tmp_path / "text", "--out", tmp_path / "m", "--model", "glove", "--min-count", 1, exit=1)
        assert_one_line(done.err)
