"""import streamvec: vectors and training. Each test that trains takes a fraction of a second."""
import gc
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import weakref

import pytest
import support
from python_support import MODULE, ROOT, numpy, streamvec

QUICK = {"dim": 16, "threads": 1, "min_count": 1}
LINES = support.topical_text(20_000).splitlines()
TOPIC = support.words_of_topic(0)


@pytest.fixture(scope="module")
def v(trained):
    return streamvec.load(trained)


def others_run_during(call):
    """Whether another thread gets a turn while `call` runs, when nobody is made to give up the GIL."""
    turns, waiting = [], threading.Lock()
    waiting.acquire()
    other = threading.Thread(target=lambda: (waiting.acquire(), turns.append(1)))
    other.start()
    before = sys.getswitchinterval()
    sys.setswitchinterval(10_000)
    try:
        waiting.release()
        end = time.monotonic() + support.TIMEOUT_S
        while not turns and time.monotonic() < end:  # whether it is given one at the first call is up to the machine
            call()
        return bool(turns)
    finally:
        sys.setswitchinterval(before)
        other.join()


class TestVectors:
    def test_a_word_has_the_vector_that_the_program_prints(self, trained, v):
        printed = support.run("vector", trained, *TOPIC[:3], exit=0).out.splitlines()
        for line, word in zip(printed, TOPIC):
            assert (numpy.array(line.split()[1:], numpy.float32) == v[word]).all()

    def test_words_are_counted_found_and_listed(self, trained, v):
        rows = support.vocabulary(trained)
        assert len(v) == len(rows) and list(v) == [word for word, _ in rows] == list(v.index_to_key)
        assert v.counts.tolist() == [count for _, count in rows]
        assert TOPIC[0] in v and "unheard" not in v and 7 not in v
        assert TOPIC[0].upper() in v and (v[TOPIC[0].upper()] == v[TOPIC[0]]).all()
        assert all(v.key_to_index[word] == v.get_index(word) == index for index, word in enumerate(v))
        assert (v.vector_size, v.model, v.generates) == (24, "sgns", False)
        assert repr(v) == f"<streamvec.WordVectors: {len(v)} words, 24 dimensions, sgns>"

    def test_arrays_are_read_only_views_of_one_table(self, v):
        row, table = v[TOPIC[0]], v.vectors
        assert row.dtype == table.dtype == numpy.float32 and row.shape == (24,) and table.shape == (len(v), 24)
        assert numpy.shares_memory(row, v[TOPIC[0]]) and numpy.shares_memory(row, table)
        assert (table[v.get_index(TOPIC[0])] == row).all()
        for array in (row, table, v.counts):
            with pytest.raises(ValueError):
                array[0] = 0
            with pytest.raises(ValueError):
                array.setflags(write=True)

    def test_an_array_keeps_its_model_alive_and_nothing_else_does(self, trained):
        mine = streamvec.load(trained)
        row, expected, gone = mine[TOPIC[0]], mine[TOPIC[0]].copy(), weakref.ref(mine)
        del mine
        gc.collect()
        assert gone() is not None
        streamvec.load(trained)  # takes the memory, were it free
        assert (row == expected).all()
        del row
        gc.collect()
        assert gone() is None

    def test_neighbours_are_those_of_the_program(self, trained, v):
        lines = support.run("nearest", trained, TOPIC[0], "-k", 5, exit=0).out.splitlines()[1:]
        mine = v.most_similar(TOPIC[0], topn=5)
        assert [word for word, _ in mine] == [line.split()[1] for line in lines]
        assert [score for _, score in mine] == pytest.approx([float(line.split()[0]) for line in lines], abs=1e-4)
        assert all(word in TOPIC for word, _ in mine)
        assert all(type(word) is str and type(score) is float for word, score in mine)

    def test_an_analogy_is_the_programs(self, trained, v):
        a, b, c = TOPIC[:3]
        lines = support.run("analogy", trained, a, b, c, "-k", 4, exit=0).out.splitlines()
        assert [word for word, _ in v.most_similar([b, c], [a], topn=4)] == [line.split()[1] for line in lines]

    def test_vectors_may_stand_for_words(self, v):
        row = v[TOPIC[0]]
        assert v.most_similar(row, topn=1) == [(TOPIC[0], pytest.approx(1))]
        mixed = v.most_similar(positive=[TOPIC[1], v.get_vector(TOPIC[2], norm=True)], negative=TOPIC[3], topn=40)
        words = v.most_similar(positive=[TOPIC[1], TOPIC[2]], negative=[TOPIC[3]], topn=40)
        assert [pair for pair in mixed if pair[0] != TOPIC[2]][:39] == [
            (word, pytest.approx(score, abs=1e-5)) for word, score in words[:39]]

    def test_words_may_come_as_an_array(self, v):
        for words in (numpy.array(TOPIC[:2]), numpy.array(TOPIC[:2], object)):
            assert v.most_similar(words, topn=3) == v.most_similar(TOPIC[:2], topn=3)
        with pytest.raises(TypeError):
            v.most_similar(numpy.array([b"bytes"]))

    def test_similarity_is_the_cosine(self, v):
        a, b = v[TOPIC[0]], v[TOPIC[1]]
        cosine = float(a @ b / numpy.linalg.norm(a) / numpy.linalg.norm(b))
        assert v.similarity(TOPIC[0], TOPIC[1]) == pytest.approx(cosine, abs=1e-5)
        assert numpy.linalg.norm(v.get_vector(TOPIC[0], norm=True)) == pytest.approx(1, abs=1e-5)

    def test_the_odd_word_out_is_found(self, v):
        other = support.words_of_topic(1)[0]
        assert v.doesnt_match([TOPIC[0], TOPIC[1], other, TOPIC[2]]) == other

    def test_several_words_give_rows(self, v):
        rows = v[TOPIC[:2]]
        assert rows.shape == (2, 24) and (rows[1] == v[TOPIC[1]]).all()

    @pytest.mark.parametrize("ask", [lambda v: v["unheard"], lambda v: v[[TOPIC[0], "unheard"]],
                                     lambda v: v.most_similar("unheard"), lambda v: v.similarity(TOPIC[0], "unheard"),
                                     lambda v: v.doesnt_match(["unheard", TOPIC[0]]), lambda v: v.get_index("unheard")])
    def test_an_unknown_word_is_a_key_error_that_names_it(self, v, ask):
        with pytest.raises(KeyError, match="unheard") as caught:
            ask(v)
        assert caught.value.code == "NOT_FOUND"

    def test_misuse_is_told(self, v):
        with pytest.raises(ValueError, match="no word"):
            v.most_similar()
        with pytest.raises(ValueError, match="3 values"):
            v.most_similar([1.0, 2.0, 3.0] * numpy.ones(3))
        with pytest.raises(TypeError):
            v[7]
        with pytest.raises(TypeError):
            v.most_similar(7)
        with pytest.raises(TypeError, match="several words"):
            v.doesnt_match("word")

    def test_words_that_cancel_each_other_out_are_a_value_error(self, v):
        for positive, negative in [(TOPIC[:1], TOPIC[:1]), (TOPIC[:3], TOPIC[2::-1]), ([v[TOPIC[0]]], [v[TOPIC[0]]])]:
            with pytest.raises(ValueError, match="cancel each other out") as caught:
                v.most_similar(positive, negative=negative)
            assert caught.value.code == "INVALID_ARGUMENT"

    def test_other_threads_run_while_it_scans(self, v):
        assert others_run_during(lambda: v.most_similar(TOPIC[0]))
        assert others_run_during(lambda: v["unheard"] if v.generates else v.most_similar(v[TOPIC[0]]))

    def test_many_threads_may_ask_at_once(self):
        rows = numpy.random.default_rng(1).standard_normal((3_000, 32))
        fresh = streamvec.WordVectors.from_vectors([f"w{i}" for i in range(3_000)], rows)
        answers = {}
        askers = [threading.Thread(target=lambda i=i: answers.update({i: fresh.most_similar(f"w{i}", topn=3)})) for i in range(8)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        unit = rows / numpy.linalg.norm(rows, axis=1, keepdims=True)
        for i in range(8):
            expected = [f"w{j}" for j in numpy.argsort(-(unit @ unit[i])) if j != i][:3]
            assert [word for word, _ in answers[i]] == expected


class TestUnseenWords:
    @pytest.mark.parametrize("model", ["subword", "rbsg", "hybrid"])
    def test_models_that_read_spellings_answer_for_any_word(self, tmp_path, model):
        (tmp_path / "text.txt").write_text(support.text_of_endings(600))
        options = {"hidden": 16, "character_dim": 8} if model == "rbsg" else {}
        streamvec.train(tmp_path / "text.txt", out=tmp_path / "m", model=model, **QUICK, **options)
        v = streamvec.load(tmp_path / "m")
        assert v.generates and "brandnewation" not in v
        made = v["brandnewation"]
        printed = support.run("vector", tmp_path / "m", "brandnewation", exit=0).out.split()[1:]
        assert (made == numpy.array(printed, numpy.float32)).all() and not made.flags.writeable
        answer = json.loads(support.run("nearest", tmp_path / "m", "brandnewation", "-k", 3, "--json", exit=0).out)[0]
        expected = [(found["word"], pytest.approx(found["cosine"], abs=1e-5)) for found in answer["neighbours"]]
        assert v.most_similar("brandnewation", topn=3) == expected
        assert v.most_similar(made, topn=3) == expected
        assert -1 <= v.similarity("brandnewation", "otherless") <= 1
        with pytest.raises(ValueError):
            v[""]


class TestTraining:
    def test_a_file_gives_what_the_program_gives(self, text, tmp_path):
        support.run("train", text, "--out", tmp_path / "program", *support.QUICK, exit=0)
        result = streamvec.train(text, out=tmp_path / "python", epochs=1, **QUICK)
        assert support.weights(tmp_path / "python") == support.weights(tmp_path / "program")
        assert (result.tokens, result.dim, result.vocab) == (20_000 // 12 * 12, 16, len(streamvec.load(tmp_path / "python")))
        assert result.fraction == 1 and result.loss > 0 and "TrainProgress" in repr(result)

    def test_files_may_have_any_name(self, text, tmp_path):
        """Also one that is no UTF-8; as str, as bytes and as a path, alone and in a list."""
        name = os.fsencode(tmp_path) + b"/caf\xe9.txt"
        os.link(text, name)
        plain = streamvec.train(text, out=tmp_path / "plain", **QUICK)
        for i, given in enumerate([name, os.fsdecode(name), pathlib.Path(os.fsdecode(name)), [name]]):
            assert streamvec.train(given, out=os.fsencode(tmp_path / f"m{i}"), **QUICK).tokens == plain.tokens
            assert support.weights(tmp_path / f"m{i}") == support.weights(tmp_path / "plain")
        open(os.fsencode(tmp_path) + b"/empty\xe9.txt", "w").close()
        result = streamvec.train([name, os.fsencode(tmp_path) + b"/empty\xe9.txt"], out=tmp_path / "two", **QUICK)
        assert any("empty\udce9.txt" in note for note in result.notes)

    def test_files_that_options_name_may_have_any_name(self, text, tmp_path):
        name = os.fsencode(tmp_path) + b"/\xe9.txt"
        with open(name, "w") as file:
            file.write(f"{TOPIC[0]}\n")
        lemmas = tmp_path / "lemmas.tsv"
        lemmas.write_text(f"{TOPIC[1]}\t{TOPIC[2]}\n")
        streamvec.train(text, out=tmp_path / "m", stop_words=["english", name], lemmas=lemmas, **QUICK)
        assert TOPIC[2] in streamvec.load(tmp_path / "m") and not {TOPIC[0], TOPIC[1]} & set(streamvec.load(tmp_path / "m"))

    def test_documents_in_a_list_give_what_their_file_gives(self, text, tmp_path):
        streamvec.train(text, out=tmp_path / "file", epochs=2, **QUICK)
        streamvec.train(documents=LINES, out=tmp_path / "list", epochs=2, **QUICK)
        streamvec.train(documents=[line.split() for line in LINES], out=tmp_path / "words", epochs=2, **QUICK)
        assert support.weights(tmp_path / "list") == support.weights(tmp_path / "file") == support.weights(tmp_path / "words")

    def test_documents_of_an_iterator_are_read_once(self, tmp_path):
        result = streamvec.train(documents=iter(LINES), out=tmp_path / "m", **QUICK)
        assert result.tokens == sum(len(line.split()) for line in LINES)
        assert set(TOPIC) <= set(streamvec.load(tmp_path / "m"))
        with pytest.raises(ValueError, match="only once, epochs asks for 2"):
            streamvec.train(documents=(line for line in LINES), out=tmp_path / "n", epochs=2, **QUICK)

    def test_documents_are_asked_for_on_the_thread_that_trains(self, tmp_path):
        threads = set()

        class Corpus:
            def __iter__(self):
                for line in LINES[:200]:
                    threads.add(threading.get_ident())
                    yield line

        streamvec.train(documents=Corpus(), out=tmp_path / "m", epochs=2, threads=2, min_count=1, dim=8)
        assert threads == {threading.get_ident()}

    def test_training_goes_on_from_a_directory_with_new_words(self, tmp_path):
        streamvec.train(documents=LINES, out=tmp_path / "m", **QUICK)
        first = streamvec.load(tmp_path / "m")
        streamvec.train(documents=["fresh words of another day"] * 50, out=tmp_path / "m", threads=1)
        second = streamvec.load(tmp_path / "m")
        assert "fresh" in second and "fresh" not in first and set(first) < set(second)
        assert second.vector_size == 16 and second.step > first.step

    def test_a_stream_keeps_documents_apart(self, tmp_path):
        documents = [streamvec.Document(line, id=str(i), time_s=1_600_000_000 + i) for i, line in enumerate(LINES[:300])]
        result = streamvec.train(documents=iter(documents), out=tmp_path / "m", half_life="30d", drift=False, **QUICK)
        assert result.documents == 300
        assert set(TOPIC[:5]) <= set(streamvec.load(tmp_path / "m"))

    def test_odd_strings_are_text_too(self, tmp_path):
        documents = ["nul\0 and \ud800 lone", b"bytes \xff here", "왕 여왕 日本", ("a", "tuple")] * 20
        result = streamvec.train(documents=documents, out=tmp_path / "m", **QUICK)
        v = streamvec.load(tmp_path / "m")
        assert {"왕", "lone", "bytes", "tuple"} <= set(v) and result.bytes_replaced > 0

    @pytest.mark.parametrize("text, read", [("caf\udce9 au lait", "caf\udce9 au lait"), (b"\xff bytes", "\udcff bytes"),
                                            ("\ud800 lone", None), ("왕 여왕", "왕 여왕")])
    def test_a_document_takes_the_text_that_may_stand_for_it(self, tmp_path, text, read):
        document = streamvec.Document(text, id=text)
        assert read is None or (document.text, document.id) == (read, read)
        for name, given in [("plain", text), ("document", document)]:
            streamvec.train(documents=[given] * 20, out=tmp_path / name, **QUICK)
        assert support.weights(tmp_path / "document") == support.weights(tmp_path / "plain")
        document.text = document.id = text
        assert read is None or (document.text, document.id) == (read, read)
        with pytest.raises(TypeError, match="str or bytes, not int"):
            streamvec.Document(7)

    def test_progress_is_reported_on_the_calling_thread(self, tmp_path):
        seen, reported = [], threading.Event()

        def progress(now):
            seen.append((now.tokens, threading.get_ident(), type(now)))
            reported.set()

        def documents():  # goes on until there was a report
            while not reported.is_set():
                yield LINES[0]

        streamvec.train(documents=documents(), out=tmp_path / "m", progress=progress, **QUICK)
        assert seen and all(who == threading.get_ident() and kind is streamvec.TrainProgress for _, who, kind in seen)

    def test_counting_is_reported(self, tmp_path):
        counted = threading.Event()

        class Corpus:
            def __iter__(self):
                yield LINES[0]
                while not counted.is_set():
                    yield LINES[1]

        class Enough(Exception):
            pass

        def counting(tokens, fraction):
            counted.set()
            raise Enough

        with pytest.raises(Enough):
            streamvec.train(documents=Corpus(), out=tmp_path / "m", counting=counting, **QUICK)

    def test_other_threads_run_while_it_trains(self, text, tmp_path):
        runs = iter(range(1000))
        assert others_run_during(lambda: streamvec.train(text, out=tmp_path / str(next(runs)), **QUICK))

    def test_an_exception_of_the_documents_saves_and_comes_through(self, tmp_path):
        def documents():
            yield from LINES
            raise LookupError("the database is gone")

        with pytest.raises(LookupError, match="database is gone"):
            streamvec.train(documents=documents(), out=tmp_path / "m", **QUICK)
        assert set(TOPIC[:3]) <= set(streamvec.load(tmp_path / "m"))

    def test_an_exception_of_a_callback_saves_and_comes_through(self, tmp_path):
        class Enough(Exception):
            pass

        def progress(now):
            raise Enough

        def documents():
            while True:
                yield LINES[0]

        with pytest.raises(Enough):
            streamvec.train(documents=documents(), out=tmp_path / "m", progress=progress, **QUICK)
        assert len(streamvec.load(tmp_path / "m")) > 0

    def test_ctrl_c_saves_and_the_same_call_goes_on_where_it_was(self, tmp_path):
        """A run that is interrupted in its second epoch and called again ends with the bits of one that was not."""
        script = """
import os, signal, sys
import streamvec
lines = open(sys.argv[2]).read().splitlines()
class Corpus:
    passes = 0
    def __iter__(self):
        Corpus.passes += 1
        for i, line in enumerate(lines):
            if len(sys.argv) > 3 and Corpus.passes == 3 and i == 15000:
                os.kill(os.getpid(), signal.SIGINT)
            yield line
try:
    streamvec.train(documents=Corpus(), out=sys.argv[1], dim=8, threads=1, min_count=1, epochs=2)
    print("done")
except KeyboardInterrupt:
    print("interrupted")
"""
        text = tmp_path / "text.txt"
        text.write_text(support.topical_text(250_000))

        def call(out, *more):
            done = subprocess.run([sys.executable, "-c", script, tmp_path / out, text, *more], capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": MODULE}, timeout=support.TIMEOUT_S)
            assert done.returncode == 0, done.stderr
            return done.stdout.strip()

        assert call("whole") == "done"
        assert call("parts", "stop") == "interrupted"
        assert 0 < streamvec.load(tmp_path / "parts").step < streamvec.load(tmp_path / "whole").step
        assert call("parts") == "done"
        assert support.weights(tmp_path / "parts") == support.weights(tmp_path / "whole")

    def test_ctrl_c_ends_a_wait_for_documents(self, tmp_path):
        script = ("import streamvec, sys, time\n"
                  "def documents():\n"
                  "    yield from ['a few words to begin with'] * 50\n"
                  "    print('waiting', flush=True)\n"
                  "    time.sleep(600)\n"
                  "streamvec.train(documents=documents(), out=sys.argv[1], dim=8, threads=1, min_count=1)\n")
        child = subprocess.Popen([sys.executable, "-c", script, tmp_path / "m"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env={**os.environ, "PYTHONPATH": MODULE}, text=True)
        try:
            assert child.stdout.readline() == "waiting\n"
            child.send_signal(signal.SIGINT)
            _, errors = child.communicate(timeout=support.TIMEOUT_S)
        finally:
            child.kill()
        assert child.returncode == -signal.SIGINT and "KeyboardInterrupt" in errors
        assert "words" in streamvec.load(tmp_path / "m")

    @pytest.mark.parametrize("options,kind,message", [
        ({"dim": 0}, ValueError, "dim is 0; it must be 1 to 65536"),
        ({"min_count": 0}, ValueError, "min_count is 0"),
        ({"pace": 0.5}, ValueError, "pace is 0.5; it must be 1 to 100"),
        ({"model": "word2vec"}, ValueError, "word2vec"),
        ({"tokenizer": "bytes"}, ValueError, "words or whitespace"),
        ({"half_life": "soon"}, ValueError, "soon"),
        ({"character_dim": -16}, ValueError, "^character_dim is -16"),
        ({"memory_mb": -16}, ValueError, "^memory_mb is -16"),
        ({"window": 2**40}, ValueError, "window is 1099511627776, which is out of range"),
        ({"seed": -1}, ValueError, "seed is -1"),
        ({"model": 5}, TypeError, "model cannot be 5"),
        ({"lemmas": 5}, TypeError, "lemmas cannot be 5"),
        ({"stop_words": "english"}, TypeError, "stop_words cannot be 'english'"),
        ({"analogy": [5]}, TypeError, r"analogy cannot be \[5\]"),
        ({"dim": "many"}, TypeError, "dim cannot be 'many'"),
        ({"dimension": 5}, TypeError, "dimension")])
    def test_bad_options_are_named(self, text, tmp_path, options, kind, message):
        with pytest.raises(kind, match=message):
            streamvec.train(text, out=tmp_path / "m", **{"threads": 1, **options})
        assert not (tmp_path / "m").exists() or not any(path.name.isdigit() for path in (tmp_path / "m").iterdir())

    @pytest.mark.parametrize("model", ["sgns", "cbow", "subword", "glove", "rbsg", "hybrid"])
    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("name,values", [
        ("epochs", [0, -1, 1_000_001]), ("checkpoint_every_s", [-1, float("nan"), float("inf"), 2e9]),
        ("evaluate_every_s", [-16, float("nan"), float("inf"), 2e9])])
    def test_numbers_out_of_range_are_refused_by_every_model_and_by_streams(self, tmp_path, model, stream, name, values):
        for value in values:
            with pytest.raises(ValueError, match=f"^{name} is .*; it must be") as caught:
                streamvec.train(documents=LINES[:9], out=tmp_path / "m", model=model, stream=stream, **QUICK, **{name: value})
            assert caught.value.code == "INVALID_ARGUMENT"
        assert not (tmp_path / "m").exists()

    def test_what_the_program_refuses_is_refused_here(self, text, tmp_path):
        """-1, for every number that both take."""
        table = (ROOT / "apps/streamvec/table.cc").read_text()
        numbers = re.findall(r'\{"([a-z-]+)", Kind::k(?:Integer|Real), .*?\}', table, re.DOTALL)
        keywords = {"char-dim": "character_dim", "memory": "memory_mb", "checkpoint-every": "checkpoint_every_s",
                    "evaluate-every": "evaluate_every_s"}
        taken = {name: keywords.get(name, name.replace("-", "_")) for name in numbers}
        taken = {name: keyword for name, keyword in taken.items() if keyword in streamvec._native.option_names}
        assert len(taken) > 20
        for name, keyword in taken.items():
            refused = support.run("train", text, "--out", tmp_path / "m", f"--{name}=-1", exit=2)
            assert f"--{name}" in refused.err
            with pytest.raises(ValueError, match=f"^{keyword} is -1"):
                streamvec.train(text, out=tmp_path / "m", **{keyword: -1})

    def test_an_error_leaves_commands_as_they_are(self, tmp_path):
        with pytest.raises(FileNotFoundError) as caught:
            streamvec.load(tmp_path / "nosuch")
        assert str(caught.value).endswith(f"make one with: streamvec train SOURCE --out {tmp_path / 'nosuch'}")

    def test_errors_have_fitting_types(self, text, tmp_path, trained):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            streamvec.train(tmp_path / "nowhere.txt", out=tmp_path / "m")
        with pytest.raises(FileNotFoundError):
            streamvec.load(tmp_path / "nowhere")
        with pytest.raises(streamvec.Error, match="24-dimensional vectors, dim asks for 7") as caught:
            streamvec.train(text, out=trained, dim=7)
        assert caught.value.code == "FAILED_PRECONDITION" and isinstance(caught.value, RuntimeError)
        with pytest.raises(TypeError, match="either sources or documents"):
            streamvec.train(out=tmp_path / "m")
        with pytest.raises(TypeError, match="train\\(path, out"):
            streamvec.train(documents="corpus.txt", out=tmp_path / "m")
        with pytest.raises(TypeError, match="not int"):
            streamvec.train(documents=[1, 2], out=tmp_path / "m")
        with pytest.raises(ValueError, match="no text"):
            streamvec.train(documents=[], out=tmp_path / "m")
        assert issubclass(streamvec.ResourceError, (MemoryError, OSError))
