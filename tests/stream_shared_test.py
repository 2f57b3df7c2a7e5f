"""Nodes that divide one stream of a broker among them, whoever takes part."""
import pytest
import support
from etcd_support import roster, roster_text
from stream_support import Nats, SharingNodes, assert_each_counted_once, counts

pytestmark = support.needs("gRPC")


@pytest.fixture
def nats(tmp_path):
    server = Nats(tmp_path / "js")
    server.make_stream("NEWS", "limits")
    yield server
    server.close()


@pytest.fixture
def nodes(tmp_path, nats):
    yield from SharingNodes.of(tmp_path, f"nats://127.0.0.1:{nats.port}/NEWS?shared=1", lambda text: nats.add("NEWS", text))


class TestSharedStream:
    def test_every_document_is_one_nodes_and_those_of_one_that_is_killed_are_the_others(self, nodes, tmp_path):
        nodes.add(200)
        nodes.start(3)
        nodes.assert_all_read_once()
        assert sum(nodes.documents()) == 200 and min(nodes.documents()) > 20, nodes.documents()
        nodes.kill(nodes.processes[2])
        nodes.add(200)  # some before it is missed
        nodes.assert_all_read_once()
        nodes.stop()
        assert_each_counted_once(tmp_path / "model", "doc", 400)

    def test_other_numbers_of_nodes_go_on_and_lose_nothing_and_read_nothing_twice(self, nodes):
        nodes.assert_other_numbers_go_on(documents=100)

    def test_a_newcomer_has_its_share_and_the_next_leader_divides_anew(self, etcd, nodes, nats, tmp_path):
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
