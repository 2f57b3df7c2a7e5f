"""Questions to a model: nearest, analogy, vector, eval."""
import json
import math
import random
import re

import pytest
from support import assert_one_line, run, topical_text, words_of_topic


class TestNearest:
    def test_words_of_a_topic_are_neighbours(self, trained):
        answers = json.loads(run("nearest", trained, "aaax", "baax", "-k", 5, "--json", exit=0).out)
        assert [answer["word"] for answer in answers] == ["aaax", "baax"]
        for answer in answers:
            assert answer["seen"] is True and len(answer["neighbours"]) == 5
            assert all(found["word"][0] == answer["word"][0] for found in answer["neighbours"]), answer
            cosines = [found["cosine"] for found in answer["neighbours"]]
            assert cosines == sorted(cosines, reverse=True) and all(-1 <= cosine <= 1.0001 for cosine in cosines)
            assert answer["word"] not in [found["word"] for found in answer["neighbours"]]

    def test_ten_are_shown_unless_told(self, trained):
        assert len(json.loads(run("nearest", trained, "aaax", "--json", exit=0).out)[0]["neighbours"]) == 10

    def test_more_than_there_are_gives_all_others(self, trained):
        answers = json.loads(run("nearest", trained, "aaax", "-k", 100_000, "--json", exit=0).out)
        assert len(answers[0]["neighbours"]) == 119

    def test_an_unknown_word_is_named_and_the_others_answered(self, trained):
        done = run("nearest", trained, "aaax", "xyzzy", "--json", exit=1)
        known, unknown = json.loads(done.out)
        assert known["seen"] is True and known["neighbours"]
        assert unknown == {"word": "xyzzy", "seen": False, "neighbours": []}
        assert "xyzzy" in done.err
        assert_one_line(done.err)

    @pytest.mark.parametrize("question", [["nearest"], ["vector"], ["analogy", "aaax"], ["drift"]])
    def test_an_empty_word_is_called_empty(self, trained, question):
        done = run(question[0], trained, *question[1:], "aaax", "", exit=2)
        assert f"WORD {len(question) + 1} is empty" in done.err
        assert_one_line(done.err)

    def test_a_stop_word_is_said_to_be_left_out_perhaps(self, text, tmp_path):
        (tmp_path / "stop").write_text("aaax\n")
        run("train", text, "--out", tmp_path / "m", "--dim", 8, "--stop-words", tmp_path / "stop", exit=0)
        assert "stop words" in run("nearest", tmp_path / "m", "aaax", exit=1).err

    def test_case_is_folded_when_the_word_as_written_is_unknown(self, trained):
        upper, lower = (json.loads(run("nearest", trained, word, "--json", exit=0).out)[0] for word in ("AAAX", "aaax"))
        assert upper["word"] == "AAAX" and upper["neighbours"] == lower["neighbours"]

    def test_people_get_a_table(self, trained):
        out = run("nearest", trained, "aaax", "-k", 3, exit=0).out
        assert out.splitlines()[0] == "aaax" and len(out.splitlines()) == 4


class TestSourceCheck:
    def test_a_file_is_told_what_it_takes(self, tmp_path):
        (tmp_path / "text.txt").write_text("some text\n")
        for what in (tmp_path / "text.txt", "text.txt"):
            done = run("source", "check", what, exit=2)
            assert str(what) in done.err and "http" in done.err and "Bad scheme" not in done.err
            assert_one_line(done.err)


class TestAnalogy:
    def test_the_three_words_are_left_out(self, trained):
        answer = json.loads(run("analogy", trained, "aaax", "aabx", "baax", "-k", 4, "--json", exit=0).out)
        found = [item["word"] for item in answer["answers"]]
        assert len(found) == 4 and not {"aaax", "aabx", "baax"} & set(found)

    def test_the_answer_is_nearest_to_b_less_a_plus_c(self, trained):
        words = [word for topic in range(4) for word in words_of_topic(topic)]
        unit = {}
        for line in run("vector", trained, *words, exit=0).out.splitlines():
            word, *values = line.split()
            values = [float(value) for value in values]
            unit[word] = [value / math.hypot(*values) for value in values]
        a, b, c = "aaax", "abax", "cacx"
        wanted = [y - x + z for x, y, z in zip(unit[a], unit[b], unit[c])]
        best = max(set(words) - {a, b, c}, key=lambda word: sum(x * y for x, y in zip(unit[word], wanted)))
        answer = json.loads(run("analogy", trained, a, b, c, "-k", 1, "--json", exit=0).out)
        assert answer["answers"][0]["word"] == best

    def test_an_unknown_word_is_named(self, trained):
        done = run("analogy", trained, "aaax", "xyzzy", "baax", exit=1)
        assert "xyzzy" in done.err
        assert_one_line(done.err)


class TestVector:
    def test_one_line_a_word(self, trained):
        lines = run("vector", trained, "aaax", "baax", exit=0).out.splitlines()
        assert [line.split()[0] for line in lines] == ["aaax", "baax"]
        for line in lines:
            values = [float(value) for value in line.split()[1:]]
            assert len(values) == 24 and any(values) and all(map(math.isfinite, values))

    def test_the_cosine_of_two_vectors_is_the_one_nearest_shows(self, trained):
        shown = json.loads(run("nearest", trained, "aaax", "-k", 1, "--json", exit=0).out)[0]["neighbours"][0]
        a, b = ([float(value) for value in line.split()[1:]]
                for line in run("vector", trained, "aaax", shown["word"], exit=0).out.splitlines())
        cosine = sum(x * y for x, y in zip(a, b)) / math.dist(a, [0] * 24) / math.dist(b, [0] * 24)
        assert abs(cosine - shown["cosine"]) < 1e-4

    def test_an_unknown_word_is_named_and_the_others_printed(self, trained):
        done = run("vector", trained, "xyzzy", "aaax", exit=1)
        assert done.out.startswith("aaax ") and "xyzzy" in done.err


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """A similarity set and an analogy set about the topics, and text the model has not seen."""
    folder = tmp_path_factory.mktemp("sets")
    a, b = words_of_topic(0), words_of_topic(1)
    pairs = [(a[i], a[i + 1], 9 - i / 10) for i in range(5)] + [(a[i], b[i], 1 + i / 10) for i in range(5)]
    (folder / "sim.tsv").write_text("".join(f"{x}\t{y}\t{score}\n" for x, y, score in pairs) + "xyzzy\taaax\t3\n")
    (folder / "ana.txt").write_text(f": topics\n{a[0]} {a[1]} {b[0]} {b[1]}\n{a[0]} {a[1]} xyzzy {b[1]}\n")
    (folder / "held.txt").write_text(topical_text(5_000, seed=9))
    return folder


class TestEval:
    def test_similarity_has_the_promised_fields(self, trained, sets):
        result = json.loads(run("eval", trained, "--similarity", sets / "sim.tsv", "--json", exit=0).out)
        (entry,) = result["similarity"]
        assert entry["set"] == "sim" and entry["pairs"] == 11 and entry["covered"] == 10
        assert entry["spearman"] > 0.5

    def test_several_sets_are_answered_in_order(self, trained, sets, tmp_path):
        (tmp_path / "other.tsv").write_text((sets / "sim.tsv").read_text())
        result = json.loads(run("eval", trained, "--similarity", sets / "sim.tsv", "--similarity", tmp_path / "other.tsv",
                                "--json", exit=0).out)
        assert [entry["set"] for entry in result["similarity"]] == ["sim", "other"]

    def test_analogy_has_the_promised_fields(self, trained, sets):
        result = json.loads(run("eval", trained, "--analogy", sets / "ana.txt", "--json", exit=0).out)
        (entry,) = result["analogy"]
        assert entry["set"] == "ana" and entry["questions"] == 2 and entry["covered"] == 1
        assert entry["accuracy"] in (0, 1)

    def test_a_question_outside_the_frequent_words_is_not_covered(self, trained, sets):
        result = json.loads(run("eval", trained, "--analogy", sets / "ana.txt", "--analogy-vocab", 3, "--json", exit=0).out)
        assert result["analogy"][0]["covered"] == 0

    def test_held_out_loss_is_better_than_of_foreign_text(self, trained, sets, tmp_path):
        def loss(path):
            return json.loads(run("eval", trained, "--text", path, "--json", exit=0).out)["loss"]
        scrambled = sets / "held.txt"
        words = scrambled.read_text().split()
        (tmp_path / "mixed.txt").write_text("\n".join(" ".join(words[i::400]) for i in range(400)) + "\n")
        assert 0 < loss(sets / "held.txt") < loss(tmp_path / "mixed.txt")

    def test_pip_reads_the_text_it_was_trained_on_when_none_is_given_and_names_it(self, trained):
        done = run("eval", trained, "--pip", "--json", exit=0)
        assert str(trained.parent / "text.txt") in done.err and "--text" in done.err
        assert_one_line(done.err)
        pip = json.loads(done.out)["pip"]
        assert pip["relative"] > 0 and pip["mean_square"] >= 0 and pip["oracle_dim"] == 24
        assert pip["cka"] > 0.5 > pip["references"]["permuted"]["cka"]

    def test_pip_without_text_says_what_to_give(self, text, tmp_path):
        run("train", "-", "--out", tmp_path / "m", "--dim", 8, "--json", input=text.read_bytes(), exit=0)
        done = run("eval", tmp_path / "m", "--pip", exit=1)
        assert "--text" in done.err
        assert_one_line(done.err)

    @pytest.mark.parametrize("kind", ["imported", "glove"])
    @pytest.mark.parametrize("measure, key", [("--pip", "pip"), ("--choose-dim", "choose_dim")])
    def test_what_needs_no_context_vectors_is_measured_without_the_loss(self, tmp_path, kind, measure, key):
        text = tmp_path / "text.txt"  # of more topics than there are negatives: some pairs have positive SPPMI
        draw = random.Random(1)
        text.write_text("".join(" ".join(f"t{topic}w{draw.randrange(6)}" for _ in range(12)) + "\n"
                                for topic in draw.choices(range(40), k=2000)))
        run("train", text, "--out", tmp_path / "glove", "--model", "glove", "--dim", 8, "--min-count", 1, "--epochs", 2,
            "--threads", 1, exit=0)
        run("export", tmp_path / "glove", "--format", "word2vec", tmp_path / "v.txt", exit=0)
        run("import", tmp_path / "v.txt", "--out", tmp_path / "imported", exit=0)
        done = run("eval", tmp_path / kind, measure, "--text", text, "--json", exit=0)
        result = json.loads(done.out)
        assert result[key] and result["loss"] is None
        assert "no held-out loss" in done.err
        assert_one_line(done.err)

    def test_text_alone_is_an_error_for_a_model_without_context_vectors(self, trained, sets, tmp_path):
        run("export", trained, "--format", "word2vec", tmp_path / "v.txt", exit=0)
        run("import", tmp_path / "v.txt", "--out", tmp_path / "m", exit=0)
        done = run("eval", tmp_path / "m", "--text", sets / "held.txt", exit=1)
        assert "no context vectors" in done.err and "--pip" in done.err
        assert_one_line(done.err)

    def test_choose_dim_names_a_dimension(self, trained, sets):
        result = json.loads(run("eval", trained, "--choose-dim", "--json", exit=0).out)
        assert result["choose_dim"]["dim"] >= 1

    def test_people_get_a_table(self, trained, sets):
        out = run("eval", trained, "--similarity", sets / "sim.tsv", "--analogy", sets / "ana.txt", "--choose-dim",
                  "--text", sets / "held.txt", exit=0).out
        assert "sim" in out and "ana" in out and "10" in out
        assert re.search(r" \d+ \(\d+ to \d+( or more)?\)$", out.splitlines()[-1]), out

    def test_without_a_measure_it_describes_the_model(self, trained):
        result = json.loads(run("eval", trained, "--json", exit=0).out)
        assert result["vocab"] == 120 and result["dim"] == 24 and result["similarity"] == [] and result["analogy"] == []

    def test_a_set_with_a_bad_line_is_named_with_the_line(self, trained, tmp_path):
        (tmp_path / "bad.tsv").write_text("a\tb\t1\na\tb\n")
        done = run("eval", trained, "--similarity", tmp_path / "bad.tsv", exit=1)
        assert "bad.tsv:2" in done.err

    def test_a_set_that_is_not_there_is_named(self, trained, tmp_path):
        assert "no.tsv" in run("eval", trained, "--similarity", tmp_path / "no.tsv", exit=1).err


FORMATS = ["word2vec", "word2vec-bin", "glove", "npy", "safetensors", "projector"]
ENDINGS = {"word2vec": "txt", "word2vec-bin": "bin", "glove": "txt", "npy": "npy", "safetensors": "safetensors",
           "projector": "tsv"}


class TestExchange:
    @pytest.mark.parametrize("form", FORMATS)
    def test_what_is_exported_is_imported_with_equal_vectors(self, trained, tmp_path, form):
        out = tmp_path / f"v.{ENDINGS[form]}"
        run("export", trained, "--format", form, out, exit=0)
        run("import", out, "--out", tmp_path / "m", exit=0)
        words = words_of_topic(0)[:5]
        assert run("vector", tmp_path / "m", *words, exit=0).out == run("vector", trained, *words, exit=0).out

    def test_imported_vectors_are_where_training_goes_on(self, trained, tmp_path):
        run("export", trained, "--format", "word2vec", tmp_path / "v.txt", exit=0)
        run("import", tmp_path / "v.txt", "--out", tmp_path / "m", exit=0)
        before = run("vector", tmp_path / "m", "dabx", exit=0).out
        (tmp_path / "more.txt").write_text("newcomer meets aaax and abax\n" * 300)
        done = run("train", tmp_path / "more.txt", "--out", tmp_path / "m", "--threads", 1, "--json", exit=0)
        assert json.loads(done.out)["dim"] == 24
        assert run("vector", tmp_path / "m", "dabx", exit=0).out == before
        assert json.loads(run("nearest", tmp_path / "m", "newcomer", "--json", exit=0).out)[0]["seen"] is True

    def test_an_unknown_format_is_refused_with_the_list(self, trained, tmp_path):
        done = run("export", trained, "--format", "hdf5", tmp_path / "v", exit=2)
        assert "word2vec-bin" in done.err

    def test_a_file_that_holds_no_vectors_is_named(self, tmp_path):
        (tmp_path / "junk").write_bytes(bytes(range(256)))
        done = run("import", tmp_path / "junk", "--out", tmp_path / "m", exit=1)
        assert "junk" in done.err and not (tmp_path / "m" / "latest").exists()

    def test_import_does_not_overwrite_a_model(self, trained, tmp_path):
        run("export", trained, "--format", "glove", tmp_path / "v.txt", exit=0)
        run("import", tmp_path / "v.txt", "--out", tmp_path / "m", exit=0)
        done = run("import", tmp_path / "v.txt", "--out", tmp_path / "m", exit=1)
        assert str(tmp_path / "m") in done.err
