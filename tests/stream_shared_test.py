"""Nodes that divide one stream of a broker among them, whoever takes part."""
import json
import signal
import subprocess

import pytest
import support
from etcd_support import roster, roster_text
from stream_support import Nats, assert_each_counted_once, checkpoint_file, counts, planted_text

pytestmark = support.needs("gRPC")

QUICK = ["--vocab-max", "5000", "--dim", "16", "--min-count", "1", "--threads", "1", "--sync-words", "1000", "--no-drift",
         "--evaluate-every", "0", "--checkpoint-every", "0.2", "--dead-after", "2"]


@pytest.fixture
def nats(tmp_path):
    server = Nats(tmp_path / "js")
    server.make_stream("NEWS", "limits")
    yield server
    server.close()


class Nodes:
    """`streamvec train` on the same shared stream, several times; how many documents there are."""

    def __init__(self, tmp_path, nats):
        self.tmp_path, self.nats, self.added = tmp_path, nats, 0
        self.processes = []

    def node(self, *options):
        self.processes.append(subprocess.Popen(
            [support.PROGRAM, "train", f"nats://127.0.0.1:{self.nats.port}/NEWS?shared=1", "--out", "model", "--json", *QUICK,
             *options], cwd=self.tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))

    def start(self, count):
        addresses = ",".join(f"127.0.0.1:{port}" for port in support.free_ports(count))
        self.processes = []
        for rank in range(count):
            self.node(*(["--nodes", addresses, "--rank", str(rank)] if count > 1 else []))

    def add(self, count):
        for _ in range(count):
            self.nats.add("NEWS", planted_text("doc", self.added))
            self.added += 1

    def assert_all_read_once(self):
        """And stand behind it: a checkpoint later than the first that has it all."""
        model = self.tmp_path / "model"
        ended = lambda: any(process.poll() not in (None, -signal.SIGKILL) for process in self.processes)
        support.wait_for(lambda: counts(model).get("tells", 0) >= self.added or ended(), "all documents")
        counted = (model / "latest").read_text()
        support.wait_for(lambda: (model / "latest").read_text() != counted or ended(), "the next checkpoint")
        assert_each_counted_once(model, "doc", self.added)

    def kill(self, process):
        process.kill()
        process.communicate()
        self.processes.remove(process)

    def stop(self, leader=None):
        """What each has said, the first first."""
        (leader or self.processes[0]).send_signal(signal.SIGINT)
        said = [process.communicate(timeout=support.TIMEOUT_S) for process in self.processes]
        assert [process.returncode for process in self.processes] == [0] * len(said), said
        return said

    def documents(self):
        """Of each node, by the newest checkpoint."""
        cursors = json.loads(checkpoint_file(self.tmp_path / "model", "cursors.json"))
        return [place["totals"]["documents"] for place in [cursors, *cursors.get("nodes", {}).values()]]


class TestSharedStream:
    def test_every_document_is_one_nodes_and_those_of_one_that_is_killed_are_the_others(self, nats, tmp_path):
        nodes = Nodes(tmp_path, nats)
        nodes.add(200)
        nodes.start(3)
        nodes.assert_all_read_once()
        assert sum(nodes.documents()) == 200 and min(nodes.documents()) > 20, nodes.documents()
        nodes.kill(nodes.processes[2])
        nodes.add(200)  # some before it is missed
        nodes.assert_all_read_once()
        nodes.stop()
        assert_each_counted_once(tmp_path / "model", "doc", 400)

    def test_other_numbers_of_nodes_go_on_and_lose_nothing_and_read_nothing_twice(self, nats, tmp_path):
        nodes = Nodes(tmp_path, nats)
        for count in (2, 3, 1, 2):
            nodes.add(100)
            nodes.start(count)
            nodes.assert_all_read_once()
            nodes.add(100)
            nodes.stop()  # in the midst of it
            found = counts(tmp_path / "model")
            assert all(found.get(f"doc{n}", 1) == 1 for n in range(nodes.added)), found
        nodes.start(1)
        nodes.assert_all_read_once()
        nodes.stop()

    def test_a_newcomer_has_its_share_and_the_next_leader_divides_anew(self, etcd, nats, tmp_path):
        nodes = Nodes(tmp_path, nats)
        ports = support.free_ports(3)
        join = lambda port: nodes.node("--etcd", etcd, "--job", "shared", "--workers", "2", "--address", f"127.0.0.1:{port}")
        for port in ports[:2]:
            join(port)
        nodes.add(100)
        nodes.assert_all_read_once()
        join(ports[2])
        support.wait_for(lambda: len(roster(etcd, "shared")) == 3, "a third node")
        def all_have_read():  # the third has its share a little after it is in the roster
            nodes.add(50)
            nodes.assert_all_read_once()
            return len(nodes.documents()) == 3 and min(nodes.documents()) > 5

        support.wait_for(all_have_read, "documents of the third")
        by_address = {f"127.0.0.1:{port}": process for port, process in zip(ports, nodes.processes)}
        leading = lambda: by_address[roster(etcd, "shared")[roster_text(etcd, "shared").split()[2]]]
        nodes.kill(leading())
        support.wait_for(lambda: leading().poll() is None, "another leader")
        for number in range(200):
            nats.add("NEWS", f"later{number} comes")
        found = lambda: counts(tmp_path / "model")
        support.wait_for(lambda: all(f"later{number}" in found() for number in range(200)), "what came later")
        nodes.stop(leading())
        assert all(found()[f"later{number}"] == 1 for number in range(200)), found()

    def test_a_part_for_good_of_what_is_shared_is_refused(self, tmp_path):
        done = support.run("train", "nats://127.0.0.1:1/NEWS?shared=1&part=0/2", "--out", tmp_path / "model", exit=1)
        support.assert_one_line(done.err)
        assert "shared=1" in done.err and "part=0/2" in done.err
