"""Where text comes from: every way in gives the same words, and bad files are named."""
import os
import subprocess

import pytest
from support import assert_one_line, run, topical_text, train, vocabulary


def refused(*sources, out):
    done = run("train", *sources, "--out", out, exit=1)
    assert_one_line(done.err)
    assert done.out == "" and not (out / "latest").exists()
    return done.err


class TestBadSources:
    def test_a_file_that_is_not_there_is_named(self, tmp_path):
        error = refused(tmp_path / "nowhere.txt", out=tmp_path / "m")
        assert str(tmp_path / "nowhere.txt") in error

    def test_an_unreadable_file_is_named(self, text, tmp_path):
        text.chmod(0)
        if os.access(text, os.R_OK):  # root reads everything, so a directory loop stands for what even root cannot open
            text.unlink()
            text.symlink_to(text)
        assert str(text) in refused(text, out=tmp_path / "m")

    def test_an_empty_file_is_named(self, tmp_path):
        (tmp_path / "empty.txt").write_bytes(b"")
        assert str(tmp_path / "empty.txt") in refused(tmp_path / "empty.txt", out=tmp_path / "m")

    def test_an_empty_file_among_others_is_counted_not_fatal(self, text, tmp_path):
        (tmp_path / "empty.txt").write_bytes(b"")
        result = train(tmp_path / "empty.txt", text, "--out", tmp_path / "m")
        assert any("empty.txt" in note for note in result["notes"])
        assert result["tokens"] == 20_000 // 12 * 12

    def test_a_binary_file_is_named(self, tmp_path):
        (tmp_path / "a.bin").write_bytes(bytes(range(256)) * 64)
        assert str(tmp_path / "a.bin") in refused(tmp_path / "a.bin", out=tmp_path / "m")

    def test_a_compressed_file_cut_short_is_named(self, text, tmp_path):
        subprocess.run(["gzip", "-k", text], check=True)
        whole = (tmp_path / "text.txt.gz").read_bytes()
        (tmp_path / "cut.gz").write_bytes(whole[:len(whole) // 2])
        done = run("train", tmp_path / "cut.gz", "--out", tmp_path / "m")
        assert "cut.gz" in done.err

    def test_an_empty_directory_is_named(self, tmp_path):
        (tmp_path / "d").mkdir()
        assert str(tmp_path / "d") in refused(tmp_path / "d", out=tmp_path / "m")

    def test_text_without_frequent_words_says_what_to_try(self, tmp_path):
        (tmp_path / "rare.txt").write_text("one two three\n")
        done = run("train", tmp_path / "rare.txt", "--out", tmp_path / "m", "--min-count", "5", exit=1)
        assert "--min-count" in done.err

    def test_bad_utf8_and_giant_words_are_mended_and_counted(self, text, tmp_path):
        bad = tmp_path / "bad.txt"
        bad.write_bytes(text.read_bytes() + b"caf\xff au\n" + b"y" * 1_000_000 + b"\n")
        result = train(bad, "--out", tmp_path / "m")
        assert result["bytes_replaced"] >= 1 and result["words_dropped"] >= 1

    def test_out_that_is_a_file_is_named(self, text, tmp_path):
        (tmp_path / "m").write_text("not a directory")
        done = run("train", text, "--out", tmp_path / "m", exit=1)
        assert str(tmp_path / "m") in done.err and (tmp_path / "m").read_text() == "not a directory"


class TestSameText:
    @pytest.fixture(scope="class")
    def plain(self, tmp_path_factory):
        folder = tmp_path_factory.mktemp("plain")
        (folder / "text.txt").write_text(topical_text(20_000))
        train(folder / "text.txt", "--out", folder / "m")
        return folder

    @pytest.mark.parametrize("tool, suffix", [("gzip", "gz"), ("zstd", "zst"), ("xz", "xz"), ("bzip2", "bz2")])
    def test_compressed_text_gives_the_same_vocabulary(self, plain, tmp_path, tool, suffix):
        packed = tmp_path / f"text.txt.{suffix}"
        with open(packed, "wb") as out:
            subprocess.run([tool, "-c", plain / "text.txt"], stdout=out, check=True)
        train(packed, "--out", tmp_path / "m")
        assert vocabulary(tmp_path / "m") == vocabulary(plain / "m")

    def test_standard_input_gives_the_same_words_and_counts(self, plain, tmp_path):
        train("-", "--out", tmp_path / "m", input=(plain / "text.txt").read_bytes())
        assert sorted(vocabulary(tmp_path / "m")) == sorted(vocabulary(plain / "m"))

    def test_a_directory_is_all_its_files(self, plain, tmp_path):
        lines = (plain / "text.txt").read_text().splitlines(keepends=True)
        (tmp_path / "d").mkdir()
        (tmp_path / "d" / "1.txt").write_text("".join(lines[:900]))
        (tmp_path / "d" / "2.txt").write_text("".join(lines[900:]))
        result = train(tmp_path / "d", "--out", tmp_path / "m")
        assert vocabulary(tmp_path / "m") == vocabulary(plain / "m")
        assert result["tokens"] == sum(count for _, count in vocabulary(plain / "m"))

    def test_several_files_are_one_text(self, plain, tmp_path):
        train(plain / "text.txt", plain / "text.txt", "--out", tmp_path / "m")
        assert [(word, 2 * count) for word, count in vocabulary(plain / "m")] == vocabulary(tmp_path / "m")

    def test_slots_go_by_falling_count(self, plain):
        counts = [count for _, count in vocabulary(plain / "m")]
        assert counts == sorted(counts, reverse=True)


class TestWords:
    def vocabulary_of(self, tmp_path, content, *options):
        (tmp_path / "t.txt").write_text(content * 3)
        train(tmp_path / "t.txt", "--out", tmp_path / "m", *options)
        return dict(vocabulary(tmp_path / "m"))

    def test_case_is_folded_unless_kept(self, tmp_path):
        assert self.vocabulary_of(tmp_path, "King king KING\n") == {"king": 9}

    def test_keep_case_keeps_it(self, tmp_path):
        assert self.vocabulary_of(tmp_path, "King king KING\n", "--keep-case") == {"King": 3, "king": 3, "KING": 3}

    def test_korean_and_other_scripts_are_words(self, tmp_path):
        found = self.vocabulary_of(tmp_path, "왕은 궁전에 산다 Äpfel und Öl\n")
        assert {"왕은", "궁전에", "산다", "äpfel", "und", "öl"} <= set(found)

    def test_whitespace_cuts_where_word2vec_does(self, tmp_path):
        assert "don't," in self.vocabulary_of(tmp_path, "don't, stop\n", "--tokenizer", "whitespace")

    def test_stop_words_are_left_out(self, tmp_path):
        (tmp_path / "stop").write_text("the\n")
        assert set(self.vocabulary_of(tmp_path, "the king the queen\n", "--stop-words", tmp_path / "stop")) == {"king", "queen"}

    def test_stems_replace_words(self, tmp_path):
        assert set(self.vocabulary_of(tmp_path, "running runs run\n", "--stem", "english")) == {"run"}

    def test_an_unknown_stemmer_is_named(self, tmp_path):
        (tmp_path / "t.txt").write_text("a b c\n")
        done = run("train", tmp_path / "t.txt", "--out", tmp_path / "m", "--stem", "klingon", exit=2)
        assert "klingon" in done.err

    def test_lemmas_replace_words(self, tmp_path):
        (tmp_path / "lemmas").write_text("went\tgo\ngoes\tgo\n")
        assert set(self.vocabulary_of(tmp_path, "went goes go\n", "--lemmas", tmp_path / "lemmas")) == {"go"}

    @pytest.mark.parametrize("way", ["file", "pipe", "stream"])
    def test_a_word_has_its_lemma_where_it_is_another_words_lemma_too(self, tmp_path, way):
        (tmp_path / "lemmas").write_text("saw\tsee\nsaws\tsaw\n")
        for turn in (1, 2):
            text = tmp_path / f"{turn}.txt"
            text.write_text("saws saw see\n" * 40)
            source, piped = ("-", text.read_bytes()) if way == "pipe" else (text, None)
            train(source, "--out", tmp_path / "m", "--lemmas", tmp_path / "lemmas", *["--stream"] * (way == "stream"),
                  input=piped)
            assert dict(vocabulary(tmp_path / "m")) == {"see": 80 * turn, "saw": 40 * turn}

    def test_a_stream_goes_on_with_the_unit_of_its_half_life_alone(self, text, tmp_path):
        train(text, "--out", tmp_path / "m", "--half-life", "2000s")
        done = run("train", text, "--out", tmp_path / "m", "--half-life", "2000", exit=1)
        assert "half-life of 2000s, --half-life asks for 2k" in done.err
        assert_one_line(done.err)

    def test_vocab_max_keeps_the_frequent(self, tmp_path):
        assert set(self.vocabulary_of(tmp_path, "a a a b b c\n", "--vocab-max", 2)) == {"a", "b"}
