"""Nodes on hosts of their own, whose network is cut: what they send is lost, and nothing says so."""
import contextlib
import errno
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
import support

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import namespaces  # noqa: E402

NODES, DEAD_AFTER_S = 3, 5
WAYS = {"async": ["--sync", "async"], "ring": ["--sync", "ring"],
        "rbsg": ["--model", "rbsg", "--hidden", 32, "--char-dim", 16]}


@pytest.fixture(scope="module")
def hosts():
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(namespaces.hosts(f"sv{os.getpid() % 100_000}", NODES))
        except (RuntimeError, OSError) as why:
            pytest.skip(f"hosts with a network of their own: {why}")
        # Where bridges are filtered hosts do not hear each other; one that does hear refuses a port that nobody listens to.
        ask = f"import socket; s = socket.socket(); s.settimeout(20); print(s.connect_ex(('{made[1].address}', 9)))"
        answer = subprocess.run([*made[0].before, sys.executable, "-c", ask], capture_output=True, text=True).stdout.strip()
        if answer != str(errno.ECONNREFUSED):
            pytest.skip(f"hosts with a network of their own do not hear each other (connect: {answer})")
        yield made


class Cut:
    """A cluster that trains without end, of which one node is cut off; what comes of it, and that it goes on until it is told
    to stop."""

    def __init__(self, hosts, folder, way, victim, mend_after_s=None):
        self.folder = folder
        addresses = ",".join(f"{host.address}:7400" for host in hosts)
        command = [support.PROGRAM, "train", "corpus.txt", "--out", "model", "--nodes", addresses, "--dim", 16, "--threads", 1,
                   "--epochs", 1_000_000, "--dead-after", DEAD_AFTER_S, "--checkpoint-every", 0.5, "--json", *WAYS[way]]
        environment = dict(os.environ, STREAMVEC_CLUSTER_TOKEN="a secret of these tests")
        self.nodes = [subprocess.Popen([*host.before, *map(str, command), "--rank", str(rank)], cwd=folder, env=environment,
                                       stdout=subprocess.PIPE, stderr=open(folder / f"err{rank}", "w"), text=True)
                      for rank, host in enumerate(hosts)]
        try:
            self.await_progress()
            hosts[victim].cut()
            begun = time.monotonic()
            if mend_after_s is not None:
                time.sleep(mend_after_s)
                hosts[victim].mend()
            else:
                self.await_end(NODES - 1 if victim == 0 else victim)
            self.took_s = time.monotonic() - begun
            self.await_progress()
            self.nodes[0].send_signal(signal.SIGTERM)
            said = [node.communicate(timeout=support.TIMEOUT_S)[0] for node in self.nodes]
        finally:
            hosts[victim].mend()
            for node in self.nodes:
                node.kill()
                node.wait()
        self.codes = [node.returncode for node in self.nodes]
        self.said = [json.loads(out) if out else None for out in said]
        self.complaints = [(folder / f"err{rank}").read_text() for rank in range(NODES)]

    def tokens(self):
        """Of the newest checkpoint."""
        with contextlib.suppress(OSError, ValueError):  # between two of them
            state = json.loads((support.newest(self.folder / "model") / "state.json").read_text())["state"]
            return state["progress"]["tokens"]
        return 0

    def await_progress(self):
        before = self.tokens()
        support.wait_for(lambda: self.nodes[0].poll() is not None or self.tokens() > before, "a checkpoint")
        assert self.nodes[0].poll() is None, (self.folder / "err0").read_text()

    def await_end(self, rank):
        support.wait_for(lambda: self.nodes[rank].poll() is not None, f"the end of node {rank}")


@support.needs("gRPC")
class TestCut:
    @pytest.mark.parametrize("way", WAYS)
    def test_the_others_go_on_without_one_that_is_cut_off_and_it_ends_with_an_error(self, hosts, corpus, tmp_path, way):
        cut = Cut(hosts, tmp_path, way, victim=2)
        assert cut.codes == [0, 0, 1], cut.complaints
        assert cut.took_s < 6 * DEAD_AFTER_S
        assert any("left out" in note for note in cut.said[0]["notes"])
        assert "not heard" in cut.complaints[2]
        support.run("nearest", tmp_path / "model", "aaax", exit=0)

    def test_one_that_leads_goes_on_alone_when_it_is_cut_off_and_the_others_end_with_an_error(self, hosts, corpus, tmp_path):
        cut = Cut(hosts, tmp_path, "async", victim=0)
        assert cut.codes == [0, 1, 1], cut.complaints
        assert all("not heard" in complaint for complaint in cut.complaints[1:])
        support.run("nearest", tmp_path / "model", "aaax", exit=0)

    @pytest.mark.parametrize("way", WAYS)
    def test_a_cut_that_is_soon_mended_loses_nobody(self, hosts, corpus, tmp_path, way):
        cut = Cut(hosts, tmp_path, way, victim=1, mend_after_s=1)
        assert cut.codes == [0, 0, 0], cut.complaints
        assert cut.said[0]["nodes"] == NODES and cut.said[0]["notes"] == []
