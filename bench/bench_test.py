"""The benchmarks themselves: every program gets the same words, spreads and ratios are what they say, runs end well."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER))

import common  # noqa: E402
import peers  # noqa: E402


def load(script):
    loader = importlib.machinery.SourceFileLoader(f"bench_{script}", str(FOLDER / script))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def run(script, *args):
    done = subprocess.run([sys.executable, FOLDER / script, *map(str, args)], capture_output=True, text=True,
                          timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def text(tmp_path):
    return common.make_up_text(tmp_path / "text.txt", tokens=20_000, words=300)


class TestText:
    def test_case_and_punctuation_are_gone_and_lines_stay(self, tmp_path):
        (tmp_path / "in").write_text("The KING, (the Queen)!\n\nnaïve_café 42\n")
        text = common.prepare_text(tmp_path / "in", tmp_path / "out", min_count=1)
        assert (tmp_path / "out").read_text() == "the king the queen\nnaïve café 42\n"
        assert (text.tokens, text.lines, text.vocab, text.known) == (7, 2, 6, 7)

    def test_long_lines_are_cut_and_no_word_is_lost_at_block_ends(self, tmp_path):
        words = [f"w{i % 977}" for i in range(400_000)]
        (tmp_path / "in").write_text(" ".join(words))
        common.prepare_text(tmp_path / "in", tmp_path / "out", min_count=1)
        lines = (tmp_path / "out").read_text().splitlines()
        assert " ".join(lines).split() == words
        assert max(len(line.split()) for line in lines) == common.LINE_WORDS_MAX

    def test_a_slice_ends_before_its_bytes_do(self, tmp_path):
        (tmp_path / "in").write_text("one two three\n" * 100)
        text = common.prepare_text(tmp_path / "in", tmp_path / "out", min_count=1, bytes_max=100)
        assert text.bytes == (tmp_path / "out").stat().st_size == 98

    def test_words_too_rare_are_counted_apart(self, tmp_path):
        (tmp_path / "in").write_text("a a a b b c\n")
        text = common.prepare_text(tmp_path / "in", tmp_path / "out", min_count=2)
        assert (text.tokens, text.vocab, text.known) == (6, 2, 5)


class TestFigures:
    def test_a_spread_shows_median_and_range(self):
        assert common.Spread([3.0, 1.0, 2.0]).show(".1f") == "2.0 (1.0 to 3.0)"
        assert common.Spread([3.0]).show(".1f") == "3.0"

    def test_ratios_are_taken_within_a_round(self):
        ours = [{"tokens_per_s": 100}, {"tokens_per_s": 50}]
        theirs = [{"tokens_per_s": 10}, {"tokens_per_s": 5}]
        assert load("compare").ratios(ours, theirs).values == [10, 10]

    def test_epochs_double_and_end_with_the_most(self):
        counts = load("novels").epoch_counts
        assert (counts(1), counts(8), counts(10)) == ([1], [1, 2, 4, 8], [1, 2, 4, 8, 10])

    def test_a_kernel_holds_within_two_standard_errors_and_not_beyond(self, capsys):
        judge = load("seeds").print_verdicts
        figures = {"simd": [{"mean": m} for m in (.50, .51, .52)], "bf16": [{"mean": m} for m in (.49, .50, .52)],
                   "amx": [{"mean": m} for m in (.40, .41, .42)]}
        verdicts = judge({kind: kind for kind in figures}, figures)
        assert [verdicts[kind]["verdict"] for kind in ("bf16", "amx")] == ["holds", "is worse"]


class TestCores:
    def test_more_threads_than_cores_are_refused(self):
        first = min(os.sched_getaffinity(0))
        with pytest.raises(common.Failure, match="2 threads on 1 core"):
            common.cores_of(str(first), 2)

    def test_a_core_that_is_not_ours_is_refused(self):
        with pytest.raises(common.Failure, match="99999"):
            common.cores_of("99999", 1)


class TestPeers:
    SETTINGS = common.Settings(dim=16, min_count=1)

    @pytest.mark.parametrize("name", ["fasttext", "gensim"])
    def test_a_peer_is_trained_and_its_vectors_are_imported(self, name, text, tmp_path):
        prepared = common.prepare_text(text, tmp_path / "prepared", min_count=1)
        cores = common.cores_of(None, 1)
        result = peers.PEERS[name](prepared, self.SETTINGS, 1, cores, tmp_path / "peer")
        assert result["tokens_per_s"] > 1000
        assert result["vocab"] in (prepared.vocab, prepared.vocab + 1)  # fastText counts the line's end as a word
        common.Program(None, cores).import_vectors(result["vectors"], tmp_path / "model")
        assert (tmp_path / "model" / "latest").exists()

    def test_fasttext_that_fails_is_told_with_its_reason(self, tmp_path):
        missing = common.Text(tmp_path / "missing", "missing", 1, 1, 1, 1, 1)
        with pytest.raises(common.Failure, match="cannot be opened"):
            peers.train_fasttext(missing, self.SETTINGS, 1, common.cores_of(None, 1), tmp_path / "peer")


class TestScripts:
    QUICK = ["--dim", 16, "--min-count", 1]

    def test_compare_prints_speed_and_quality_of_all_programs(self, text, tmp_path):
        (tmp_path / "pairs.txt").write_text("t a 1\no i 2\nn s 3\n")
        printed = run("compare", "--text", text, "--kernels", "simd,auto", "--repeat", 2, *self.QUICK, "--quality",
                      "--quality-epochs", 1, "--similarity", tmp_path / "pairs.txt", "--out", tmp_path / "out.json")
        assert "times fasttext" in printed and "times gensim" in printed
        results = json.loads((tmp_path / "out.json").read_text())
        assert {"fasttext", "gensim"} < set(results["quality"]["results"])
        assert all(len(speed["runs"]) == 2 for speed in results["speed"]["tokens_per_s"].values())

    def test_threads_compares_with_the_first_number(self, text, tmp_path):
        run("threads", "--text", text, "--threads", "1", "--repeat", 2, *self.QUICK, "--out", tmp_path / "out.json")
        results = json.loads((tmp_path / "out.json").read_text())
        assert results["runs"][0]["ratio"]["runs"] == [1, 1]

    def test_novels_shows_every_reference(self, text):
        printed = run("novels", text, "--dims", 16, "--epochs", 2, "--min-count", 1)
        for row in ("zeros", "0 epochs", "1 epoch", "2 epochs", "rows permuted", "split half"):
            assert f"| {row}" in printed

    def test_novels_can_look_at_one_training_on_its_way(self, text):
        assert "| 3 epochs" in run("novels", text, "--dims", 16, "--epochs", 3, "--min-count", 1, "--continued")

    def test_a_missing_text_is_one_line(self):
        done = subprocess.run([sys.executable, FOLDER / "compare", "--text", "/no/such/file", "--kernels", "simd"],
                              capture_output=True, text=True)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == "compare: /no/such/file: No such file or directory"
