"""L-BFGS over all the text by several nodes: what it learns, stopping and going on, death of a node."""
import json
import signal
import subprocess

import pytest
import support

pytestmark = support.needs("gRPC")


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "corpus.txt").write_text(support.topical_text(60_000))
    return tmp_path / "corpus.txt"


def start_nodes(tmp_path, count, *options, per_node=lambda rank: []):
    nodes = ",".join(f"127.0.0.1:{port}" for port in support.free_ports(count))
    return [subprocess.Popen([support.PROGRAM, "train", "corpus.txt", "--out", "model", "--threads", "1", "--nodes", nodes,
                              "--rank", str(rank), "--sync", "sandblaster", "--json", *map(str, options), *per_node(rank)],
                             cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(count)]


def newest(tmp_path):
    latest = tmp_path / "model" / "latest"
    return int(latest.read_text()) if latest.exists() else -1


def await_steps(tmp_path, nodes, count):
    """Waits for so many further checkpoints."""
    for _ in range(count):
        before = newest(tmp_path)
        support.wait_for(lambda: newest(tmp_path) > before or nodes[0].poll() is not None, "a checkpoint")
        assert nodes[0].poll() is None, nodes[0].communicate()


class TestSandblaster:
    def test_words_of_one_company_become_neighbours(self, corpus, tmp_path):
        done = subprocess.run([support.PROGRAM, "launch", "-n", "2", "--servers", "1", "--", "train", "corpus.txt", "--out",
                               "model", "--dim", "16", "--sync", "sandblaster", "--epochs", "20", "--threads", "1", "--json"],
                              cwd=tmp_path, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert report["nodes"] == 3 and "20 steps" in report["notes"][-1]
        nearest = json.loads(support.run("nearest", tmp_path / "model", "aaax", "-k", 5, "--json", exit=0).out)
        assert all(near["word"][-1] == "x" for near in nearest[0]["neighbours"]), nearest

    def test_a_stopped_run_goes_on_from_its_point(self, corpus, tmp_path):
        losses = []
        for _ in range(2):
            nodes = start_nodes(tmp_path, 2, "--dim", 16, "--epochs", 1_000_000, "--checkpoint-every", 0.001)
            await_steps(tmp_path, nodes, 3)
            nodes[1].send_signal(signal.SIGTERM)  # whoever is asked, all end
            (out, err), _ = [node.communicate(timeout=200) for node in nodes]
            assert [node.returncode for node in nodes] == [0, 0], err
            losses.append(json.loads(out)["loss"])
        assert losses[1] < losses[0]

    @pytest.mark.parametrize("servers", [0, 1])
    def test_training_goes_on_when_a_node_is_killed(self, servers, corpus, tmp_path):
        """The second of three nodes: it trains and owns rows, or only trains, where the third owns them all."""
        nodes = start_nodes(tmp_path, 3, "--dim", 32, "--epochs", 1_000_000, "--checkpoint-every", 0.001, "--dead-after", 6,
                            "--servers", servers)
        await_steps(tmp_path, nodes, 2)
        nodes[1].kill()
        nodes[1].communicate()
        await_steps(tmp_path, nodes, 3)  # one may be under way; more need its rows, and all portions
        nodes[0].send_signal(signal.SIGTERM)
        out, err = nodes[0].communicate(timeout=200)
        assert nodes[0].returncode == 0, err
        report = json.loads(out)
        if servers == 0:  # whoever only trains is not missed at once: others do its portions
            assert report["nodes"] == 2 and any("L-BFGS began anew" in note for note in report["notes"]), report
        assert nodes[2].wait(timeout=support.TIMEOUT_S) == 0
        support.run("nearest", tmp_path / "model", "aaax", exit=0)

    def test_a_node_with_another_sample_is_refused_with_the_reason(self, corpus, tmp_path):
        nodes = start_nodes(tmp_path, 2, "--dim", 16, per_node=lambda rank: ["--sample", ["0.001", "0.002"][rank]])
        _, err = nodes[1].communicate(timeout=support.TIMEOUT_S)
        assert nodes[1].returncode == 1 and "--sample 0.002" in err and "--sample 0.001" in err, err
        nodes[0].send_signal(signal.SIGTERM)  # it awaits the other
        assert nodes[0].communicate(timeout=support.TIMEOUT_S) and nodes[0].returncode == 0
