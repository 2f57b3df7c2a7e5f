"""The subword model from outside: training, words never seen, going on, and fastText's model files both ways."""
import json
import os
import shutil
import subprocess

import pytest
from support import (assert_one_line, go_back_to_the_middle, run, stem, tensor_shapes, text_of_endings,
                     topical_text, train, tree, weights)

SMALL = ["--model", "subword", "--bucket", "5000"]
FASTTEXT = shutil.which("fasttext")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("subword")
    (folder / "text").write_text(text_of_endings())
    train(folder / "text", "--out", folder / "model", *SMALL)
    return folder / "model"


def printed(lines):
    """Vectors by word, of `word v1 v2 ...` lines."""
    return {line.split(" ")[0]: [float(value) for value in line.split()[1:]] for line in lines.splitlines()}


def vectors_of(directory, words):
    return printed(run("vector", directory, *words, exit=0).out)


def vectors_by_fasttext(path, words):
    done = subprocess.run([FASTTEXT, "print-word-vectors", path], input="\n".join(words) + "\n", text=True, check=True,
                          capture_output=True)
    return printed(done.stdout)


def assert_same_vectors(ours, theirs):
    """fastText prints five digits."""
    assert ours.keys() == theirs.keys()
    for word, values in theirs.items():
        assert len(values) == len(ours[word])
        assert any(value != 0 for value in values)
        for mine, other in zip(ours[word], values):
            assert mine == pytest.approx(other, rel=1e-4, abs=1e-6), word


class TestGoingOn:
    def test_a_stopped_run_ends_like_one_that_was_not(self, tmp_path):
        text = tmp_path / "text"
        text.write_text(text_of_endings(5_000))
        straight, stopped = tmp_path / "straight", tmp_path / "stopped"
        slow = [*SMALL, "--kernel", "reference"]
        train(text, "--out", straight, *slow)
        train(text, "--out", stopped, *slow, "--checkpoint-every", "0.001")
        go_back_to_the_middle(stopped)
        assert weights(stopped) != weights(straight)
        train(text, "--out", stopped, *slow)
        assert weights(stopped) == weights(straight)

    def test_new_text_adds_its_words_and_their_ngrams(self, model, tmp_path):
        shutil.copytree(model, tmp_path / "model")
        (tmp_path / "more").write_text("zyzzyva quokka\n" * 50)
        before = tensor_shapes(tmp_path / "model")
        train(tmp_path / "more", "--out", tmp_path / "model")
        after = tensor_shapes(tmp_path / "model")
        assert after["input"][0] == after["subword.words"][0] == before["input"][0] + 2
        assert after["subword.buckets"][0] > before["subword.buckets"][0]
        assert json.loads(run("nearest", tmp_path / "model", "quokka", "--json", exit=0).out)[0]["seen"]

    def test_standard_input_is_learnt_in_one_pass(self, tmp_path):
        train("-", "--out", tmp_path / "model", *SMALL, input=text_of_endings().encode())
        answer = json.loads(run("nearest", tmp_path / "model", stem(4711) + "less", "--json", exit=0).out)[0]
        assert sum(found["word"].endswith("less") for found in answer["neighbours"]) >= 7

    def test_adagrad_and_adam_go_on_with_their_state(self, tmp_path):
        (tmp_path / "text").write_text(topical_text(5_000))
        for optimizer in ("adagrad", "adam"):
            out = tmp_path / optimizer
            train(tmp_path / "text", "--out", out, *SMALL, "--optimizer", optimizer)
            assert any(name.startswith("subword.buckets.") for name in tensor_shapes(out))
            train(tmp_path / "text", "--out", out, "--optimizer", optimizer)

    def test_other_ngrams_than_the_directorys_are_refused(self, model):
        before = tree(model)
        for option in (["--minn", 2], ["--maxn", 5], ["--bucket", 70]):
            done = run("train", "/dev/null", "--out", model, *option, exit=1)
            assert_one_line(done.err)
            assert "5000" in done.err
        assert tree(model) == before

    def test_lengths_that_cannot_be_are_refused(self, tmp_path):
        (tmp_path / "text").write_text(topical_text(1_000))
        done = run("train", tmp_path / "text", "--out", tmp_path / "m", "--model", "subword", "--minn", 7, exit=2)
        assert_one_line(done.err)
        assert "--maxn" in done.err

    def test_jamo_of_another_kind_than_the_directorys_are_refused(self, model):
        done = run("train", "/dev/null", "--out", model, "--jamo", exit=1)
        assert_one_line(done.err)
        assert "--jamo" in done.err

    def test_jamo_bring_forms_together_that_share_no_syllable(self, tmp_path):
        """걷다, 걸어: the stem's last letter changes; by syllables nothing is in common."""
        (tmp_path / "text").write_text("한글 걷다 길 사람\n다른 말 집 나무\n" * 200)
        cosines = []
        for jamo in ([], ["--jamo"]):
            out = tmp_path / ("model" + "".join(jamo))
            train(tmp_path / "text", "--out", out, *SMALL, "--bucket", "100000", *jamo)
            near = json.loads(run("nearest", out, "걸어", "-k", 20, "--json", exit=0).out)[0]["neighbours"]
            cosines.append({found["word"]: found["cosine"] for found in near}["걷다"])
        assert abs(cosines[0]) < 0.6 < cosines[1]

    def test_jamo_are_not_written_as_fasttexts(self, tmp_path):
        (tmp_path / "text").write_text(topical_text(1_000))
        train(tmp_path / "text", "--out", tmp_path / "m", *SMALL, "--jamo")
        done = run("export", tmp_path / "m", "--format", "fasttext-bin", tmp_path / "out.bin", exit=1)
        assert_one_line(done.err)
        assert "--jamo" in done.err and not (tmp_path / "out.bin").exists()


@pytest.mark.skipif(FASTTEXT is None, reason="fasttext is not installed")
class TestFastText:
    UNSEEN = ["x", "ab", "일본어", "naïveté", "unseenwards", "aaaaaaaa"]

    def test_what_we_write_fasttext_answers_with_our_vectors(self, model, tmp_path):
        run("export", model, "--format", "fasttext-bin", tmp_path / "ours.bin", exit=0)
        words = [stem(1) + "less", stem(2) + "ation", stem(4711) + "wards", stem(4712) + "less"]
        assert_same_vectors(vectors_of(model, words), vectors_by_fasttext(tmp_path / "ours.bin", words))

    @pytest.mark.parametrize("kind", ["skipgram", "cbow"])
    def test_what_fasttext_trains_we_answer_with_its_vectors(self, tmp_path, kind):
        (tmp_path / "text").write_text(text_of_endings(300) + "여왕 왕 naïve\n" * 20)
        subprocess.run([FASTTEXT, kind, "-input", "text", "-output", "theirs", "-dim", "16", "-bucket", "3000",
                        "-epoch", "2", "-thread", "10", "-minn", "2", "-maxn", "5"], cwd=tmp_path, check=True,
                       capture_output=True)
        run("import", tmp_path / "theirs.bin", "--out", tmp_path / "model", exit=0)
        words = [stem(1) + "less", "여왕", "naïve", "</s>", *self.UNSEEN]
        assert_same_vectors(vectors_of(tmp_path / "model", words), vectors_by_fasttext(tmp_path / "theirs.bin", words))
        # And back again: the same bytes of rows, so the same answers.
        run("export", tmp_path / "model", "--format", "fasttext-bin", tmp_path / "back.bin", exit=0)
        assert (vectors_by_fasttext(tmp_path / "back.bin", words) ==
                vectors_by_fasttext(tmp_path / "theirs.bin", words))

    def test_ngrams_hash_as_fasttexts_do(self, tmp_path):
        """print-ngrams shows each n-gram with its row: their mean is what we say of the unseen word."""
        (tmp_path / "text").write_text("king queen\n" * 20)
        # Of fastText 0.9.2 each thread draws a tenth of the rows: with fewer than ten the others stay zero.
        subprocess.run([FASTTEXT, "skipgram", "-input", "text", "-output", "theirs", "-dim", "8", "-bucket", "997",
                        "-thread", "10"], cwd=tmp_path, check=True, capture_output=True)
        run("import", tmp_path / "theirs.bin", "--out", tmp_path / "model", exit=0)
        for word in ("straße", "한국어", "kingdom"):
            shown = subprocess.run([FASTTEXT, "print-ngrams", "theirs.bin", word], cwd=tmp_path, check=True,
                                   capture_output=True, text=True).stdout
            rows = [[float(value) for value in line.split()[1:]] for line in shown.splitlines()]
            mean = [sum(column) / len(rows) for column in zip(*rows)]
            assert vectors_of(tmp_path / "model", [word])[word] == pytest.approx(mean, abs=1e-5)

    def test_training_goes_on_from_a_model_of_fasttext(self, tmp_path):
        (tmp_path / "text").write_text(text_of_endings())
        subprocess.run([FASTTEXT, "skipgram", "-input", "text", "-output", "theirs", "-dim", "16", "-bucket", "3000",
                        "-epoch", "1", "-thread", "1"], cwd=tmp_path, check=True, capture_output=True)
        run("import", tmp_path / "theirs.bin", "--out", tmp_path / "model", exit=0)
        run("train", tmp_path / "text", "--out", tmp_path / "model", "--threads", 1, exit=0)
        answer = json.loads(run("nearest", tmp_path / "model", stem(4711) + "less", "--json", exit=0).out)[0]
        assert sum(found["word"].endswith("less") for found in answer["neighbours"]) >= 9

    def test_supervised_and_quantised_models_are_refused_with_the_reason(self, tmp_path):
        # fastText cannot quantise fewer than 256 rows.
        (tmp_path / "labels").write_text("".join(f"__label__{'ab'[i % 2]} {stem(i)} king\n" for i in range(400)) * 6)
        subprocess.run([FASTTEXT, "supervised", "-input", "labels", "-output", "theirs", "-dim", "8", "-thread", "1"],
                       cwd=tmp_path, check=True, capture_output=True)
        subprocess.run([FASTTEXT, "quantize", "-input", "labels", "-output", "theirs"], cwd=tmp_path, check=True,
                       capture_output=True)
        for name in ("theirs.bin", "theirs.ftz"):
            done = run("import", tmp_path / name, "--out", tmp_path / "model", exit=1)
            assert_one_line(done.err)
            assert "supervised" in done.err
            assert not os.path.exists(tmp_path / "model" / "latest")
