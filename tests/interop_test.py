"""Vectors to and from other programs: gensim, fastText, numpy, and whatever reads the published formats.

What we write they load with equal vectors; what they write we import. Equal means every bit of every float32, except
where the other program itself prints fewer digits.
"""
import gzip
import json
import shutil
import struct
import subprocess

import pytest
from support import assert_one_line, newest, run, topical_text, vocabulary

numpy = pytest.importorskip("numpy")

WORDS = ["the", "of", "왕", "여왕", "straße", "naïve", "don't", "3.14", "</s>", "x_y", "日本", "#tag", "-1", "e5"]
DIM = 19


def some_vectors(rows=len(WORDS), dim=DIM, seed=1):
    """Float32 of every size, so that a text format has to carry all digits."""
    draw = numpy.random.default_rng(seed)
    return (draw.standard_normal((rows, dim)) * 10.0 ** draw.integers(-30, 30, (rows, dim))).astype(numpy.float32)


def vectors_of(model, words):
    """What `streamvec vector` prints, as rows."""
    lines = run("vector", model, *words, exit=0).out.splitlines()
    assert [line.split(" ")[0] for line in lines] == list(words)
    return numpy.array([line.split(" ")[1:] for line in lines]).astype(numpy.float32)


def imported(tmp_path, path):
    model = tmp_path / "imported"
    run("import", path, "--out", model, exit=0)
    return model


def exported(model, form, out):
    run("export", model, "--format", form, out, exit=0)
    return out


def assert_holds(model, words, vectors):
    assert [word for word, _ in vocabulary(model)] == list(words)
    # A word that looks like an option cannot stand on a command line as it is.
    plain = [index for index, word in enumerate(words) if not word.startswith("-")]
    assert (vectors_of(model, [words[index] for index in plain]) == vectors[plain]).all()


def read_safetensors(path):
    """Tensors by the published format and nothing else: 8 bytes of length, JSON, values."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    values = data[8 + length:]
    tensors, end = {}, 0
    for name, entry in header.items():
        if name == "__metadata__":
            assert all(isinstance(value, str) for value in entry.values())
            continue
        assert entry["dtype"] == "F32"
        begin, stop = entry["data_offsets"]
        assert begin == end, "in order, without gaps"
        end = stop
        tensors[name] = numpy.frombuffer(values[begin:stop], "<f4").reshape(entry["shape"])
    assert end == len(values) and (8 + length) % 8 == 0
    return tensors


def write_safetensors(path, tensors):
    header, values = {}, b""
    for name, array in tensors.items():
        kind = {"float32": "F32", "float64": "F64", "float16": "F16"}[str(array.dtype)]
        header[name] = {"dtype": kind, "shape": list(array.shape),
                        "data_offsets": [len(values), len(values) + array.nbytes]}
        values += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + values)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model directory with WORDS and some_vectors(), imported from a file made here."""
    folder = tmp_path_factory.mktemp("interop")
    rows = [" ".join([word, *(repr(float(value)) for value in row)]) for word, row in zip(WORDS, some_vectors())]
    (folder / "made.txt").write_text("\n".join([f"{len(WORDS)} {DIM}", *rows]) + "\n")
    return imported(folder, folder / "made.txt")


class TestGensim:
    @pytest.fixture(autouse=True)
    def need_gensim(self):
        self.KeyedVectors = pytest.importorskip("gensim.models").KeyedVectors

    @pytest.mark.parametrize("form, options", [("word2vec", {"binary": False}), ("word2vec-bin", {"binary": True}),
                                               ("glove", {"binary": False, "no_header": True})])
    def test_what_we_export_gensim_loads(self, model, tmp_path, form, options):
        loaded = self.KeyedVectors.load_word2vec_format(str(exported(model, form, tmp_path / "out")), **options)
        assert loaded.index_to_key == WORDS
        assert (loaded.vectors == some_vectors()).all()

    @pytest.mark.parametrize("binary, header", [(False, True), (True, True), (False, False)])
    def test_what_gensim_saves_we_import(self, tmp_path, binary, header):
        theirs = self.KeyedVectors(DIM)
        theirs.add_vectors(WORDS, some_vectors())
        theirs.save_word2vec_format(str(tmp_path / "theirs"), binary=binary, write_header=header)
        assert_holds(imported(tmp_path, tmp_path / "theirs"), WORDS, some_vectors())

    def test_what_gensim_compresses_we_import(self, tmp_path):
        theirs = self.KeyedVectors(DIM)
        theirs.add_vectors(WORDS, some_vectors())
        for name, binary in (("theirs.txt.gz", False), ("theirs.bin.gz", True)):
            theirs.save_word2vec_format(str(tmp_path / name), binary=binary)
            assert_holds(imported(tmp_path / name[7:10], tmp_path / name), WORDS, some_vectors())

    def test_a_trained_gensim_model_gives_the_same_neighbours(self, tmp_path):
        word2vec = pytest.importorskip("gensim.models").Word2Vec
        sentences = [line.split() for line in topical_text(20_000).splitlines()]
        theirs = word2vec(sentences, vector_size=16, min_count=1, seed=1, workers=1, epochs=3).wv
        theirs.save_word2vec_format(str(tmp_path / "theirs.bin"), binary=True)
        ours = imported(tmp_path, tmp_path / "theirs.bin")
        answer = json.loads(run("nearest", ours, "aaax", "-k", 5, "--json", exit=0).out)[0]["neighbours"]
        for mine, (word, cosine) in zip(answer, theirs.most_similar("aaax", topn=5)):
            assert mine["word"] == word and mine["cosine"] == pytest.approx(cosine, abs=1e-5)


@pytest.mark.skipif(shutil.which("fasttext") is None, reason="fasttext is not installed")
class TestFastText:
    def test_what_fasttext_trains_we_import(self, tmp_path):
        (tmp_path / "text").write_text(topical_text(20_000))
        subprocess.run(["fasttext", "skipgram", "-input", "text", "-output", "theirs", "-dim", "10", "-maxn", "0",
                        "-epoch", "1", "-thread", "1"], cwd=tmp_path, check=True, capture_output=True)
        lines = (tmp_path / "theirs.vec").read_text().splitlines()[1:]
        words = [line.split()[0] for line in lines]
        vectors = numpy.array([line.split()[1:] for line in lines]).astype(numpy.float32)
        assert_holds(imported(tmp_path, tmp_path / "theirs.vec"), words, vectors)

    def test_what_we_export_fasttext_starts_from(self, model, tmp_path):
        # Only `supervised` takes vectors; at a rate of 0 it keeps them, and prints five digits.
        vectors = numpy.random.default_rng(2).standard_normal((len(WORDS), DIM)).astype(numpy.float32)
        rows = "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in zip(WORDS, vectors))
        (tmp_path / "made.glove").write_text(rows)
        exported(imported(tmp_path, tmp_path / "made.glove"), "word2vec", tmp_path / "out.vec")
        (tmp_path / "labels").write_text("__label__a the of\n__label__b 왕 여왕\n")
        subprocess.run(["fasttext", "supervised", "-input", "labels", "-output", "theirs", "-dim", str(DIM), "-lr", "0",
                        "-pretrainedVectors", "out.vec", "-epoch", "1", "-thread", "1"], cwd=tmp_path, check=True,
                       capture_output=True)
        printed = subprocess.run(["fasttext", "print-word-vectors", "theirs.bin"], cwd=tmp_path, check=True,
                                 input="\n".join(WORDS) + "\n", capture_output=True, encoding="utf-8").stdout
        for line, word, vector in zip(printed.splitlines(), WORDS, vectors):
            assert line.split()[0] == word
            numpy.testing.assert_allclose(numpy.array(line.split()[1:], dtype=float), vector, rtol=1e-4, atol=1e-6)


class TestWord2vecC:
    @pytest.mark.parametrize("line_feed", [b"\n", b""])
    def test_both_flavours_of_binary_are_imported(self, tmp_path, line_feed):
        rows = [word.encode() + b" " + vector.tobytes() + line_feed for word, vector in zip(WORDS, some_vectors())]
        (tmp_path / "v.bin").write_bytes(f"{len(WORDS)} {DIM}\n".encode() + b"".join(rows))
        assert_holds(imported(tmp_path, tmp_path / "v.bin"), WORDS, some_vectors())

    def test_our_binary_is_word2vec_c_byte_for_byte(self, model, tmp_path):
        rows = [word.encode() + b" " + vector.tobytes() + b"\n" for word, vector in zip(WORDS, some_vectors())]
        wanted = f"{len(WORDS)} {DIM}\n".encode() + b"".join(rows)
        assert exported(model, "word2vec-bin", tmp_path / "out.bin").read_bytes() == wanted

    def test_words_without_counts_fall_by_rank(self, model):
        counts = [count for _, count in vocabulary(model)]
        assert counts == sorted(counts, reverse=True) and counts[0] == len(WORDS) and counts[-1] == 1


class TestGlove:
    def test_a_compressed_file_with_blanks_in_words_is_imported(self, tmp_path):
        words = ["the", ". . .", "at name@domain.com"]
        vectors = some_vectors(3, 50)
        rows = "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, vectors))
        with gzip.open(tmp_path / "glove.txt.gz", "wt") as file:
            file.write(rows)
        model = imported(tmp_path, tmp_path / "glove.txt.gz")
        assert [word for word, _ in vocabulary(model)] == words
        assert (read_safetensors(newest(model) / "model.safetensors")["input"] == vectors).all()
        out = run("export", model, "--format", "glove", tmp_path / "out", exit=1)
        assert "'. . .'" in out.err and not (tmp_path / "out").exists()
        assert_one_line(out.err)


class TestNumpy:
    def test_what_we_export_numpy_loads(self, model, tmp_path):
        array = numpy.load(exported(model, "npy", tmp_path / "out.npy"))
        lines = (tmp_path / "out.vocab.tsv").read_text().splitlines()
        assert array.dtype == numpy.float32 and (array == some_vectors()).all()
        assert lines[0].startswith("#word\tcount") and [line.split("\t")[0] for line in lines[1:]] == WORDS

    def test_words_of_another_export_are_refused_with_both_files(self, model, tmp_path):
        (tmp_path / "other.txt").write_text("".join(f"o{row} {' '.join(['0.5'] * DIM)}\n" for row in range(len(WORDS))))
        other = imported(tmp_path, tmp_path / "other.txt")
        exported(model, "npy", tmp_path / "v.npy")
        exported(other, "safetensors", tmp_path / "v.safetensors")
        done = run("import", tmp_path / "v.npy", "--out", tmp_path / "mixed", exit=1)
        assert str(tmp_path / "v.npy") in done.err and str(tmp_path / "v.vocab.tsv") in done.err
        assert_one_line(done.err)
        assert not (tmp_path / "mixed").exists()

    def test_vectors_changed_in_numpy_are_imported_once_the_column_is_renamed(self, model, tmp_path):
        array = numpy.load(exported(model, "npy", tmp_path / "v.npy"))
        numpy.save(tmp_path / "v.npy", array[:, ::-1].copy())
        assert "rename the column xxh3=" in run("import", tmp_path / "v.npy", "--out", tmp_path / "m", exit=1).err
        words = tmp_path / "v.vocab.tsv"
        words.write_text(words.read_text().replace("xxh3=", "was=", 1))
        assert_holds(imported(tmp_path, tmp_path / "v.npy"), WORDS, array[:, ::-1])

    @pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
    def test_what_numpy_saves_we_import(self, tmp_path, kind):
        array = numpy.random.default_rng(3).standard_normal((len(WORDS), DIM)).astype(kind)
        numpy.save(tmp_path / "theirs.npy", array)
        (tmp_path / "theirs.vocab.txt").write_text("\n".join(WORDS) + "\n")
        assert_holds(imported(tmp_path, tmp_path / "theirs.npy"), WORDS, array.astype(numpy.float32))


class TestSafetensors:
    def test_what_we_export_the_published_format_describes(self, model, tmp_path):
        tensors = read_safetensors(exported(model, "safetensors", tmp_path / "out.safetensors"))
        assert list(tensors) == ["input"] and (tensors["input"] == some_vectors()).all()

    def test_a_model_directory_holds_the_published_format(self, model):
        assert (read_safetensors(newest(model) / "model.safetensors")["input"] == some_vectors()).all()

    def test_a_trained_model_has_both_tables_in_their_own_shape(self, trained, tmp_path):
        tensors = read_safetensors(newest(trained) / "model.safetensors")
        words = len(vocabulary(trained))
        assert tensors["input"].shape == tensors["output"].shape == (words, 24)
        again = imported(tmp_path, exported(trained, "safetensors", tmp_path / "out.safetensors"))
        for name in ("input", "output"):
            assert (read_safetensors(newest(again) / "model.safetensors")[name] == tensors[name]).all()
        assert vocabulary(again) == vocabulary(trained), "counts too"

    @pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
    def test_what_others_write_we_import(self, tmp_path, kind):
        array = numpy.random.default_rng(4).standard_normal((len(WORDS), DIM)).astype(kind)
        write_safetensors(tmp_path / "theirs.safetensors", {"embeddings": array})
        (tmp_path / "theirs.vocab.txt").write_text("\n".join(WORDS) + "\n")
        assert_holds(imported(tmp_path, tmp_path / "theirs.safetensors"), WORDS, array.astype(numpy.float32))


class TestProjector:
    def test_the_projector_gets_a_table_and_its_labels(self, model, tmp_path):
        out = exported(model, "projector", tmp_path / "out")
        rows = [line.split("\t") for line in (out / "tensors.tsv").read_text().splitlines()]
        labels = [line.split("\t") for line in (out / "metadata.tsv").read_text().splitlines()]
        assert (numpy.array(rows).astype(numpy.float32) == some_vectors()).all()
        assert labels[0] == ["word", "count"] and [label[0] for label in labels[1:]] == WORDS
        assert_holds(imported(tmp_path, out), WORDS, some_vectors())


class TestBadVectors:
    @pytest.mark.parametrize("text, place", [
        (b"", "is empty"), (b"3 2\na 1 2\nb 1 2\n", "line 1"), (b"2 2\na 1 2\nb 1\n", "line 1"),
        (b"2 2\na 1.25 2\nb 1\n", "line 3"), (b"2 2\na 1 2\nb 1 nan\n", "line 3"), (b"2 2\na 1 2\na 1 2\n", "line 3"),
        (b"a 1 2\nb 1 2", "line 2"), (b"99999999 300\na 1 2\n", "line 1"), (b"\x00\x01\x02\xff" * 99, "binary file")])
    def test_a_bad_file_is_refused_with_its_place_and_nothing_is_made(self, tmp_path, text, place):
        (tmp_path / "bad").write_bytes(text)
        done = run("import", tmp_path / "bad", "--out", tmp_path / "model", exit=1)
        assert str(tmp_path / "bad") in done.err and place in done.err
        assert_one_line(done.err)
        assert not (tmp_path / "model").exists()

    def test_a_full_disk_is_an_error(self, model):
        done = run("export", model, "--format", "word2vec", "/dev/full", exit=1)
        assert "/dev/full" in done.err and "space" in done.err
        assert_one_line(done.err)

    def test_an_export_can_go_to_standard_output(self, model):
        out = run("export", model, "--format", "glove", "/dev/stdout", exit=0).out
        assert [line.split(" ")[0] for line in out.splitlines()] == WORDS
