"""Tables that are shared out among nodes: the model of one process, each node's memory, death of a node, going on."""
import json
import shutil
import signal
import subprocess

import numpy as np
import pytest
import support


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "corpus.txt").write_text(support.topical_text(60_000))
    return tmp_path / "corpus.txt"


def start_nodes(tmp_path, count, *options, shard="rows", out="model", per_node=lambda rank: []):
    nodes = ",".join(f"127.0.0.1:{port}" for port in support.free_ports(count))
    return [subprocess.Popen([support.PROGRAM, "train", "corpus.txt", "--out", out, "--threads", "1", "--nodes", nodes,
                              "--rank", str(rank), "--shard", shard, "--json", *map(str, options), *map(str, per_node(rank))],
                             cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(count)]


def vectors(model):
    support.run("export", model, "--format", "npy", model / "vectors.npy", exit=0)
    return np.load(model / "vectors.npy")


class TestRefusals:
    @pytest.mark.parametrize("options, words", [(["--combine", "sum"], "--combine and --codec"), (["--codec", "fp32"], "--codec"),
                                                (["--listen", "127.0.0.1:0"], "streamvec serve")])
    @pytest.mark.parametrize("shard", ["rows", "columns"])
    def test_what_has_no_meaning_is_named(self, shard, options, words, corpus, tmp_path):
        node, = start_nodes(tmp_path, 1, *options, shard=shard)
        assert words in node.communicate(timeout=support.TIMEOUT_S)[1] and node.returncode == (1 if "--listen" in options else 2)

    def test_a_model_of_another_kind_in_the_directory_is_left_as_it_is(self, corpus, tmp_path):
        support.run("train", corpus, "--out", tmp_path / "model", "--model", "cbow", "--dim", 16, exit=0)
        before = vectors(tmp_path / "model")
        node, = start_nodes(tmp_path, 1)
        assert "not of cbow" in node.communicate(timeout=support.TIMEOUT_S)[1] and node.returncode == 1
        assert np.array_equal(vectors(tmp_path / "model"), before)


@support.needs("gRPC")
class TestAgreement:
    @pytest.mark.parametrize("option, values", [("seed", [1, 2]), ("sample", ["0.001", "0.00100001"]), ("pace", [2, 3]),
                                                ("lr", [0.1, 0.2])])
    @pytest.mark.parametrize("shard", ["rows", "columns"])
    def test_nodes_with_other_options_are_refused_with_the_reason(self, shard, option, values, corpus, tmp_path):
        nodes = start_nodes(tmp_path, 2, "--dim", 20, shard=shard, per_node=lambda rank: ["--" + option, values[rank]])
        # A ring's nodes compare among themselves; where rows are shared out, the first refuses and waits for another.
        for node in nodes if shard == "columns" else nodes[1:]:
            _, err = node.communicate(timeout=support.TIMEOUT_S)
            assert node.returncode == 1 and "give all nodes the same text and options" in err and f"--{option} " in err
        nodes[0].kill()
        nodes[0].communicate()


@support.needs("gRPC")
class TestShards:
    @pytest.mark.parametrize("owners", [1, 3])
    def test_one_worker_learns_what_one_process_learns(self, owners, corpus, tmp_path):
        # A falling rate goes by a piece's place where text is handed out, and by words in one process.
        options = ["--dim", 24, "--epochs", 2, "--kernel", "simd", "--schedule", "constant"]
        nodes = start_nodes(tmp_path, 1 + owners, "--servers", owners, *options)
        reports = [node.communicate(timeout=200) for node in nodes]
        assert [node.returncode for node in nodes] == [0] * (1 + owners), reports
        support.run("train", corpus, "--out", tmp_path / "one", "--threads", 1, *options, exit=0)
        ours, plain = vectors(tmp_path / "model"), vectors(tmp_path / "one")
        assert ours.shape == plain.shape and np.abs(plain).max() > 0.1
        assert np.abs(ours - plain).max() < 2e-3

    def test_several_workers_learn_nearly_as_well(self, corpus, tmp_path):
        (tmp_path / "held.txt").write_text(support.topical_text(20_000, seed=9))
        nodes = start_nodes(tmp_path, 3, "--dim", 24, "--epochs", 10)
        reports = [node.communicate(timeout=200) for node in nodes]
        assert [node.returncode for node in nodes] == [0, 0, 0], reports
        assert json.loads(reports[0][0])["tokens"] == 10 * len(corpus.read_text().split())
        support.run("train", corpus, "--out", tmp_path / "one", "--threads", 1, "--dim", 24, "--epochs", 10, exit=0)
        loss = {name: json.loads(support.run("eval", tmp_path / name, "--text", tmp_path / "held.txt", "--json",
                                             exit=0).out)["loss"] for name in ["model", "one"]}
        assert loss["model"] < 1.1 * loss["one"]

    @pytest.mark.skipif(support.SANITIZED, reason="sanitizers keep their own memory beside the program's")
    def test_a_node_has_memory_for_its_share_only(self, tmp_path):
        """A model of 245 MB: each of four owners has 61 MB of it, beside what every program has."""
        (tmp_path / "corpus.txt").write_text("\n".join(f"w{i} w{i + 1} w{i + 2}" for i in range(0, 30_000, 3)))
        options = ["--dim", 1024, "--min-count", 1, "--window", 1, "--negatives", 1]
        nodes = start_nodes(tmp_path, 5, "--servers", 4, *options)
        reports = [node.communicate(timeout=200) for node in nodes]
        assert [node.returncode for node in nodes] == [0] * 5, reports
        whole = json.loads(support.run("train", tmp_path / "corpus.txt", "--out", tmp_path / "one", "--threads", 1, *options,
                                       "--json", exit=0).out)["rss_mb"]
        assert whole > 245
        for out, _ in reports[1:]:
            assert json.loads(out)["rss_mb"] < whole - 245 / 2, (out, whole)

    def test_a_stopped_run_goes_on_with_all_rows(self, corpus, tmp_path):
        nodes = start_nodes(tmp_path, 2, "--dim", 24, "--epochs", 100_000, "--checkpoint-every", 0.1)
        support.wait_for(lambda: (tmp_path / "model" / "latest").exists() or nodes[0].poll() is not None, "a checkpoint")
        for node in nodes:
            node.send_signal(signal.SIGTERM)
        reports = [node.communicate(timeout=200) for node in nodes]
        assert [node.returncode for node in nodes] == [0, 0], reports
        before = vectors(tmp_path / "model")
        nodes = start_nodes(tmp_path, 2, "--dim", 24, "--epochs", 1, "--lr", 1e-9)
        reports = [node.communicate(timeout=200) for node in nodes]
        assert [node.returncode for node in nodes] == [0, 0], reports
        assert np.abs(vectors(tmp_path / "model") - before).max() < 1e-4

    # A worker is asked, or a node that only owns rows.
    @pytest.mark.parametrize("servers, asked", [(0, 1), (1, 2)], ids=["worker", "server"])
    def test_whoever_goes_on_with_a_stopped_run_counts_every_word_once(self, servers, asked, corpus, tmp_path):
        words = len(corpus.read_text().split())
        for epochs in [30, 120, 480]:  # a run that is over before it can be stopped is made longer
            options = ["--dim", 8, "--epochs", epochs]
            nodes = start_nodes(tmp_path, 3, *options, "--servers", servers, "--checkpoint-every", 0.05)
            support.wait_for(lambda: (tmp_path / "model" / "latest").exists() or nodes[0].poll() is not None, "a checkpoint")
            nodes[asked].send_signal(signal.SIGTERM)  # whoever it is, all end
            reports = [node.communicate(timeout=200) for node in nodes]
            assert [node.returncode for node in nodes] == [0, 0, 0], reports
            stopped_at = json.loads(reports[0][0])["tokens"]
            if 0 < stopped_at < epochs * words:
                break
            shutil.rmtree(tmp_path / "model")
        shutil.copytree(tmp_path / "model", tmp_path / "other")
        nodes = start_nodes(tmp_path, 2, *options, "--servers", servers)
        reports = [node.communicate(timeout=200) for node in nodes]
        assert [node.returncode for node in nodes] == [0, 0], reports
        assert json.loads(reports[0][0])["tokens"] == epochs * words
        alone = support.run("train", "corpus.txt", "--out", "other", "--threads", 1, *options, "--json", exit=0, cwd=tmp_path)
        assert json.loads(alone.out)["tokens"] == epochs * words

    def test_when_a_node_is_killed_all_end_with_an_error_and_the_checkpoint_is_there(self, corpus, tmp_path):
        nodes = start_nodes(tmp_path, 3, "--dim", 24, "--epochs", 100_000, "--checkpoint-every", 0.1, "--dead-after", 6)
        support.wait_for(lambda: (tmp_path / "model" / "latest").exists() or nodes[0].poll() is not None, "a checkpoint")
        nodes[2].kill()
        nodes[2].communicate()
        for node in nodes[:2]:
            _, err = node.communicate(timeout=support.TIMEOUT_S)
            assert node.returncode == 1 and "was not heard" in err, err
        support.run("nearest", tmp_path / "model", "aaax", exit=0)

    @pytest.mark.parametrize("options, words", [(["--model", "cbow"], "not of cbow"), (["--optimizer", "adam"], "not adam"),
                                                (["--sync", "ring"], "leave one of them out")])
    def test_options_that_do_not_fit_are_named(self, options, words, corpus, tmp_path):
        node, = start_nodes(tmp_path, 1, *options)
        _, err = node.communicate(timeout=support.TIMEOUT_S)
        assert node.returncode == 2 and words in err

    def test_tables_are_not_shared_out_without_a_cluster(self, corpus, tmp_path):
        done = support.run("train", corpus, "--out", tmp_path / "model", "--shard", "rows", exit=2)
        assert "give --nodes" in done.err


@pytest.fixture
def short_corpus(tmp_path):
    """For nodes that wait for each other in every block."""
    (tmp_path / "corpus.txt").write_text(support.topical_text(20_000))
    return tmp_path / "corpus.txt"


@support.needs("gRPC")
class TestColumns:
    @pytest.mark.parametrize("count", [2, 3])
    def test_nodes_learn_what_one_process_learns(self, count, short_corpus, tmp_path):
        corpus = short_corpus
        options = ["--dim", 20, "--epochs", 2, "--kernel", "simd", "--lr", 0.1]
        nodes = start_nodes(tmp_path, count, *options, shard="columns")
        reports = [node.communicate(timeout=200) for node in nodes]
        assert [node.returncode for node in nodes] == [0] * count, reports
        support.run("train", corpus, "--out", tmp_path / "one", "--threads", 1, *options, exit=0)
        ours, plain = vectors(tmp_path / "model"), vectors(tmp_path / "one")
        assert ours.shape == plain.shape and np.abs(plain).max() > 0.1
        assert np.abs(ours - plain).max() < 2e-3
        report = json.loads(reports[0][0])
        assert report["tokens"] == 2 * len(corpus.read_text().split()) and report["dim"] == 20

    def test_a_stopped_run_goes_on_where_it_was(self, short_corpus, tmp_path):
        for epochs in [8, 32, 128]:  # a run that is over before it can be stopped is made longer
            options = ["--dim", 20, "--epochs", epochs]
            nodes = start_nodes(tmp_path, 2, *options, "--checkpoint-every", 0.001, shard="columns")
            support.wait_for(lambda: (tmp_path / "model" / "latest").exists() or nodes[0].poll() is not None, "a checkpoint")
            nodes[1].send_signal(signal.SIGTERM)  # whoever is asked, all end after the same piece of text
            reports = [node.communicate(timeout=200) for node in nodes]
            assert [node.returncode for node in nodes] == [0, 0], reports
            if json.loads(reports[0][0])["tokens"] < epochs * len(short_corpus.read_text().split()):
                break
            shutil.rmtree(tmp_path / "model")
        for out in ["model", "whole"]:
            nodes = start_nodes(tmp_path, 2, *options, shard="columns", out=out)
            reports = [node.communicate(timeout=200) for node in nodes]
            assert [node.returncode for node in nodes] == [0, 0], reports
        assert np.abs(vectors(tmp_path / "model") - vectors(tmp_path / "whole")).max() < 1e-6

    def test_when_a_node_is_killed_the_others_end_with_an_error_and_the_checkpoint_is_there(self, corpus, tmp_path):
        nodes = start_nodes(tmp_path, 3, "--dim", 20, "--epochs", 100_000, "--checkpoint-every", 0.1, "--dead-after", 6,
                            shard="columns")
        support.wait_for(lambda: (tmp_path / "model" / "latest").exists() or nodes[0].poll() is not None, "a checkpoint")
        nodes[2].kill()
        nodes[2].communicate()
        for node in nodes[:2]:
            _, err = node.communicate(timeout=support.TIMEOUT_S)
            assert node.returncode == 1 and "the ring broke" in err, err
        support.run("nearest", tmp_path / "model", "aaax", exit=0)
