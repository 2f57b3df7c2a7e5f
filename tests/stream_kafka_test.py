"""Nodes that divide the partitions of a Kafka topic among them, whoever takes part. The broker is librdkafka's mock in a
process of its own (mock_kafka.cc), no real one."""
import json
import re
import urllib.request

import pytest
import support
from stream_support import SHARING, TELLS, Kafka, SharingNodes, assert_each_counted_once, counts

pytestmark = support.needs("gRPC")

PARTITIONS = 12


@pytest.fixture
def kafka(request):
    broker = Kafka(getattr(request, "param", PARTITIONS))
    yield broker
    broker.close()


@pytest.fixture
def nodes(tmp_path, kafka):
    yield from SharingNodes.of(tmp_path, f"kafka://{kafka.authority}/news?shared=1", kafka.add)


class FoundNodes(SharingNodes):
    """Found by etcd. Nothing is saved before the end: the first node tells what it has counted at an address."""

    def __init__(self, tmp_path, source, add_text, etcd):
        super().__init__(tmp_path, source, add_text)
        self.etcd, self.page = etcd, f"127.0.0.1:{support.free_ports(1)[0]}"

    def join(self):
        """What it writes on standard error is in the file that is returned."""
        log = self.tmp_path / f"stderr{len(self.processes)}"
        with open(log, "wb") as stderr:
            self.node("--etcd", self.etcd, "--job", "topic", "--workers", "2", "--listen", self.page, "--checkpoint-every",
                      "3600", "--address", f"127.0.0.1:{support.free_ports(1)[0]}", stderr=stderr)
        return log

    def words(self):
        """In the vocabulary of all nodes; 0 before there is one."""
        assert all(process.poll() is None for process in self.processes), [process.args for process in self.processes]
        try:
            with urllib.request.urlopen(f"http://{self.page}/api/progress", timeout=5) as answer:
                progress = json.loads(answer.read())["progress"]
        except OSError:
            return 0
        return progress[-1]["words"] if progress else 0

    def await_counted(self):
        """Each document has a word of its own."""
        support.wait_for(lambda: self.words() == self.added + len(set(TELLS.split())), "all documents")


@pytest.fixture
def found(tmp_path, kafka, etcd):
    yield from FoundNodes.of(tmp_path, f"kafka://{kafka.authority}/news?shared=1", kafka.add, etcd)


class TestSharedTopic:
    @pytest.mark.parametrize("kafka", [PARTITIONS, 1], indirect=True, ids=["partitions", "one-partition"])
    def test_nodes_that_are_launched_count_every_message_once(self, kafka, nodes, tmp_path):
        nodes.add(100)
        nodes.processes = [support.start("launch", "-n", 2, "--", "train", nodes.source, "--out", "model", "--json", *SHARING,
                                         cwd=tmp_path)]
        nodes.assert_all_read_once()
        nodes.add(100)
        nodes.assert_all_read_once()
        read = nodes.documents()
        assert sum(read) == 200 and (min(read) > 20 if kafka.partitions > 1 else sorted(read) == [0, 200]), read
        nodes.stop()
        assert_each_counted_once(tmp_path / "model", "doc", 200)

    def test_other_numbers_of_nodes_go_on_and_lose_nothing_and_read_nothing_twice(self, nodes):
        nodes.assert_other_numbers_go_on(documents=50)

    def test_a_newcomer_gets_partitions_and_what_it_read_is_read_again_when_it_is_killed(self, found, tmp_path):
        found.add(120)
        logs = [found.join(), found.join()]
        found.await_counted()
        leader, = (process for process, log in zip(found.processes, logs) if "serving at" in log.read_text())
        log = found.join()

        def has_read():  # it has its share a little after it takes part
            found.add(PARTITIONS)
            found.await_counted()
            return re.search(r"\b[1-9]\d* documents", log.read_text())

        support.wait_for(has_read, "documents of the newcomer")
        found.kill(found.processes[2])
        found.add(5 * PARTITIONS)  # some before it is missed
        found.await_counted()
        read = [json.loads(out)["documents"] for out, _ in found.stop(leader)]
        assert sum(read) == found.added and min(read) > 20, "the two that are left have read all that there was"
        times = counts(tmp_path / "model")
        twice = [n for n in range(found.added) if times[f"doc{n}"] == 2]
        assert all(times[f"doc{n}"] == 1 for n in range(found.added) if n not in twice), times
        assert twice and min(twice) >= 120, "what was read before it came is not read again"
        for partition in {n % PARTITIONS for n in twice}:  # and of its partitions all since then is, until it was killed
            own = [n for n in twice if n % PARTITIONS == partition]
            assert own == list(range(own[0], own[-1] + 1, PARTITIONS)), twice
