"""Misuse is answered with exit 2 and a hint; help goes to standard output."""
import json

import pytest
from support import TIMEOUT_S, assert_one_line, run, start

COMMANDS = ["demo", "train", "eval", "nearest", "analogy", "vector", "drift", "export", "import", "serve", "launch",
            "reproduce", "simulate"]


class TestHelp:
    def test_the_bare_program_shows_two_examples(self):
        done = run(exit=0)
        assert "streamvec demo" in done.out and "streamvec train" in done.out

    def test_help_lists_the_commands_that_work_and_no_others(self):
        done = run("help", exit=0)
        for command in COMMANDS:
            assert f"\n  {command} " in done.out

    @pytest.mark.parametrize("command", COMMANDS)
    def test_all_three_ways_to_help_say_the_same_on_stdout(self, command):
        texts = [run(*args, exit=0) for args in (["help", command], [command, "--help"], [command, "-h"])]
        assert texts[0].out == texts[1].out == texts[2].out
        assert texts[0].out.startswith(f"streamvec {command}") and texts[0].err == ""

    def test_version_is_a_line_or_an_object(self):
        assert run("version", exit=0).out.startswith("streamvec ")
        assert run("--version", exit=0).out == run("version", exit=0).out
        assert json.loads(run("version", "--json", exit=0).out)["version"]


class TestMisuse:
    @pytest.mark.parametrize("typed, meant", [("trian", "train"), ("nearst", "nearest"), ("evaluate", "eval")])
    def test_an_unknown_command_is_named_with_the_nearest(self, typed, meant):
        done = run(typed, exit=2)
        assert typed in done.err and f"did you mean {meant}?" in done.err
        assert_one_line(done.err)
        assert done.out == ""

    @pytest.mark.parametrize("typed, meant", [("--dimm", "--dim"), ("--negative", "--negatives"), ("--learning-rate", "--lr")])
    def test_an_unknown_flag_is_named_with_the_nearest(self, text, tmp_path, typed, meant):
        done = run("train", text, "--out", tmp_path / "m", typed, "3", exit=2)
        assert typed in done.err and f"did you mean {meant}?" in done.err
        assert_one_line(done.err)
        assert not (tmp_path / "m").exists()

    @pytest.mark.parametrize("flag, value, allowed", [
        ("--dim", "0", "1 to 65536"), ("--dim", "2x", "1 to 65536"), ("--dim", "99999999999999999999", "1 to 65536"),
        ("--window", "-1", "1 to"), ("--sample", "2", "0 to 1"), ("--sample", "nan", "0 to 1"), ("--pace", "0.5", "1 to 100"), ("--epochs", "1.5", "1 to"),
        ("--model", "word2vec", "sgns|cbow"), ("--optimizer", "lion", "sgd|adagrad|adam"), ("--kernel", "fast", "simd"),
    ])
    def test_a_bad_value_is_named_with_what_is_allowed(self, text, tmp_path, flag, value, allowed):
        done = run("train", text, "--out", tmp_path / "m", flag, value, exit=2)
        assert f"{flag} {value}" in done.err and allowed in done.err
        assert_one_line(done.err)

    def test_missing_arguments_show_the_usage(self):
        assert "train SOURCE... --out DIR" in run("train", exit=2).err
        assert "nearest DIR WORD..." in run("nearest", "m", exit=2).err
        assert "--format" in run("export", "m", "out", exit=2).err

    def test_cuda_trains_or_says_what_is_missing(self, text, tmp_path):
        done = run("train", text, "--out", tmp_path / "m", "--device", "cuda", "--min-count", 1, "--json")
        if done.returncode == 0:
            assert json.loads(done.out)["kernel"].startswith("cuda ")
        else:
            assert done.returncode == 1 and "--device cuda: " in done.err and "--device cpu" in done.err
            assert_one_line(done.err)

    def test_tables_of_bf16_and_what_products_are_in_are_for_the_card_alone(self, text, tmp_path):
        done = run("train", text, "--out", tmp_path / "m", "--table", "bf16", "--min-count", 1, exit=2)
        assert "--table bf16" in done.err and "--device cuda" in done.err
        done = run("train", text, "--out", tmp_path / "m", "--model", "rbsg", "--products", "tf32", "--min-count", 1, exit=2)
        assert "--products" in done.err and "--device cuda" in done.err
        assert_one_line(done.err)

    @pytest.mark.parametrize("flag, value", [("--rank", 1), ("--servers", 2), ("--ingest", 1)])
    def test_what_is_said_of_a_node_needs_nodes(self, text, tmp_path, flag, value):
        done = run("train", text, "--out", tmp_path / "m", flag, value, exit=2)
        assert f"{flag} {value} needs --nodes" in done.err
        assert_one_line(done.err)
        assert not (tmp_path / "m").exists()

    @pytest.mark.parametrize("command, options, words", [
        ("train", ["--nodes", "foo"], "host:port"),
        ("train", ["--nodes", "a:1,b:2", "--rank", 2], "--rank is 2; it must be 0 to 1"),
        ("train", ["--nodes", "a:1,b:2", "--servers", 2], "at least one has to train"),
        ("train", ["--nodes", "a:1,b:2", "--cluster-key", "key.pem"], "give all three"),
        ("train", ["--etcd", "foo", "--address", "a:1"], "such as http://127.0.0.1:2379"),
        ("train", ["--etcd", "http://127.0.0.1:1"], "--address"),
        ("train", ["--etcd", "http://127.0.0.1:1", "--address", "a:1", "--job", "a b"], "no name of a job"),
        ("train", ["--keep"], "--keep needs --listen"),
        ("train", ["--listen-grpc", "127.0.0.1:0"], "--listen-grpc needs --listen"),
        ("train", ["--language", "klingon"], "such as en"),
        ("train", ["--minn", 7, "--maxn", 6], "--minn"),
        ("launch", ["--servers", 1, "--sync", "ring"], "--servers 0"),
        ("launch", ["--model", "glove"], "not glove"),
        ("simulate", ["--nodes", "foo"], "as in 4,16,64"),
        ("simulate", ["--bandwidth", "foo"], "Mbit or Gbit"),
        ("serve", ["--tls-key", "key.pem"], "--tls-certificate"),
        ("serve", ["--allow-origin", "foo"], "as in https://example.org"),
        ("drift", ["--from", "soon"], "2024-05-01"),
        ("reproduce", ["--only", "nothing"], "try sound"),
        ("nearest", [""], "is empty"),
        ("source", ["check", "foo"], "http://"),
    ])
    def test_what_the_command_line_alone_shows_to_be_wrong_is_misuse(self, tmp_path, command, options, words):
        # Of files that are not there: whoever looks at them first leaves with 1.
        others = {"train": ["missing", "--out", "m"], "launch": ["-n", 2, "--", "train", "missing", "--out", "m"],
                  "nearest": ["missing", "word"], "reproduce": ["--corpus", "missing", "--out", "r.html"], "source": []}
        done = run(command, *others.get(command, ["missing"]), *options, cwd=tmp_path, exit=2)
        assert words in done.err and done.out == ""
        assert_one_line(done.err)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("options, instead", [
        (["--language", "en"], "add --stream"), (["--drop-duplicates"], "add --stream"),
        (["--similarity", "set.tsv"], "streamvec eval"), (["--analogy", "set.txt"], "streamvec eval"),
    ])
    @pytest.mark.parametrize("source", ["file", "-"])
    def test_what_only_streams_do_is_refused_of_files_and_pipes(self, text, tmp_path, options, instead, source):
        done = run("train", text if source == "file" else source, "--out", tmp_path / "m", *options, input=b"words\n", exit=1)
        assert options[0] in done.err and "streams" in done.err and instead in done.err
        assert_one_line(done.err)
        assert not (tmp_path / "m").exists()

    def test_auto_is_the_cpu_where_the_card_cannot_train_the_model(self, text, tmp_path):
        done = run("train", text, "--out", tmp_path / "m", "--device", "auto", "--model", "cbow", "--min-count", 1, "--json",
                   exit=0)
        assert not json.loads(done.out)["kernel"].startswith("cuda")


class TestConfig:
    def test_the_file_has_the_same_names_and_flags_win(self, text, tmp_path):
        config = tmp_path / "run.toml"
        config.write_text('dim = 12\nmin-count = 1\nthreads = 1\nmodel = "cbow"\n')
        done = run("train", text, "--out", tmp_path / "m", "--config", config, "--dim", 8, "--json", exit=0)
        result = json.loads(done.out)
        assert result["dim"] == 8 and result["model"] == "cbow"

    def test_an_unknown_key_is_named_with_the_nearest(self, text, tmp_path):
        config = tmp_path / "run.toml"
        config.write_text("dim = 12\nmin_count = 1\n")
        done = run("train", text, "--out", tmp_path / "m", "--config", config, exit=2)
        assert f"{config}:2" in done.err and "min_count" in done.err and "min-count?" in done.err
        assert_one_line(done.err)

    def test_a_file_that_is_not_there_is_a_failure(self, text, tmp_path):
        done = run("train", text, "--out", tmp_path / "m", "--config", tmp_path / "no.toml", exit=1)
        assert "no.toml" in done.err


class TestOutput:
    def test_a_reader_that_leaves_early_is_an_error_not_a_crash(self):
        process = start("help", "train")
        process.stdout.close()
        process.wait(timeout=TIMEOUT_S)
        error = process.stderr.read().decode()
        assert process.returncode in (0, 1) and process.returncode >= 0, error

    def test_a_full_disk_under_standard_output_is_reported(self):
        with open("/dev/full", "wb") as full:
            process = start("help", "train", stdout=full)
            error = process.stderr.read().decode()
            assert process.wait(timeout=TIMEOUT_S) == 1
        assert "standard output" in error
