"""Nodes that find each other by etcd: they join, die and take the leader's place while the others train."""
import json
import shutil
import signal
import subprocess

import pytest
import support
from etcd_support import ask_etcd, call_etcd, files_of, no_space_in, refusing, roster, roster_text


def check_three(nodes, reports, words, model):
    assert [node.returncode for node in nodes] == [0, 0, 0], reports
    report = json.loads(reports[0][0])
    assert report["nodes"] == 3
    assert report["tokens"] == words  # each part counted once, whoever had it
    support.run("nearest", model, "aaax", exit=0)


@support.needs("gRPC")
class TestEtcd:
    def start(self, tmp_path, etcd, port, *options):
        command = [support.PROGRAM, "train", "corpus.txt", "--out", "model", "--threads", "1", "--dim", "16", "--json", "--etcd",
                   etcd, "--address", f"127.0.0.1:{port}", *options]
        return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_nodes_find_each_other_and_a_later_job_of_the_same_name_begins_anew(self, etcd, corpus, tmp_path):
        for _ in range(2):
            nodes = [self.start(tmp_path, etcd, port, "--workers", "3", "--job", "daily") for port in support.free_ports(3)]
            reports = [node.communicate(timeout=200) for node in nodes]
            assert [node.returncode for node in nodes] == [0, 0, 0], reports
            assert {json.loads(out)["nodes"] for out, _ in reports} == {3}
        support.run("nearest", tmp_path / "model", "aaax", exit=0)

    def start_join_and_kill(self, tmp_path, etcd, epochs):
        """Two begin, a third joins, the second is killed and started again at once, all while the leader trains: the nodes by
        their addresses, the leader first, and the one that was killed."""
        job, ports = f"nightly{epochs}", support.free_ports(3)
        nodes = {f"127.0.0.1:{port}": None for port in ports}

        def start(address):
            nodes[address] = self.start(tmp_path, etcd, address.split(":")[1], "--job", job, "--epochs", str(epochs),
                                        "--sync-words", "1000", "--dead-after", "5", "--checkpoint-every", "0.2")

        def await_roster(members):
            ended = lambda: any(node is not None and node.poll() is not None for node in nodes.values())
            support.wait_for(lambda: ended() or members(roster(etcd, job)), "the roster")
            return roster(etcd, job)

        addresses = list(nodes)
        start(addresses[0])
        start(addresses[1])
        begun = await_roster(lambda now: len(now) == 2)
        start(addresses[2])
        await_roster(lambda now: len(now) == 3)
        killed = nodes[begun.get("2", addresses[1])]
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        start(begun.get("2", addresses[1]))
        await_roster(lambda now: len(now) == 3 and "2" not in now)
        leader = nodes.pop(begun.get("1", addresses[0]))
        return [leader, *nodes.values()], killed

    def test_nodes_join_while_others_train_and_one_is_killed_and_comes_back_as_another(self, etcd, corpus, tmp_path):
        for epochs in [60, 240, 960, 3840]:  # a run that is over before all have come is made longer
            shutil.rmtree(tmp_path / "model", ignore_errors=True)
            nodes, killed = self.start_join_and_kill(tmp_path, etcd, epochs)
            reports = [node.communicate(timeout=200) for node in nodes]
            if killed.returncode == -signal.SIGKILL and all("nobody in" not in err for _, err in reports):
                break
        check_three(nodes, reports, epochs * len(corpus.read_text().split()), tmp_path / "model")

    def start_and_join(self, tmp_path, etcd, job, options):
        """Two begin and a third joins, unless they end before: the nodes, the one that leads first."""
        options = ["--job", job, "--dead-after", "5", "--checkpoint-every", "0.2", *options]
        ports = support.free_ports(3)
        nodes = {f"127.0.0.1:{port}": self.start(tmp_path, etcd, port, *options) for port in ports[:2]}
        support.wait_for(lambda: (tmp_path / "model" / "latest").exists(), "a checkpoint")
        over = lambda: any(node.poll() is not None for node in nodes.values())
        if not over():
            nodes[f"127.0.0.1:{ports[2]}"] = third = self.start(tmp_path, etcd, ports[2], *options)
            support.wait_for(lambda: over() or len(roster(etcd, job)) == 3, "a third")
            if over():
                third.kill()  # it may have begun the next job, and wait for others
        leader = nodes.pop(roster(etcd, job).get("1", next(iter(nodes))))
        return [leader, *nodes.values()]

    @pytest.mark.parametrize("epochs, options", [(20, ["--sync", "ring", "--sync-words", "1000"]), (20, ["--model", "hybrid"]),
                                                 (3, ["--model", "rbsg", "--hidden", "16", "--char-dim", "8", "--batch", "256"])],
                             ids=["rows", "counts", "encoders"])
    def test_a_node_joins_a_ring_while_the_others_train(self, epochs, options, etcd, corpus, tmp_path):
        for epochs in [epochs, 4 * epochs, 16 * epochs]:  # a run that is over before it has come is made longer
            shutil.rmtree(tmp_path / "model", ignore_errors=True)
            nodes = self.start_and_join(tmp_path, etcd, f"ring{epochs}", ["--epochs", str(epochs), *options])
            reports = [node.communicate(timeout=200) for node in nodes]
            if len(nodes) == 3 and nodes[2].returncode == 0:
                break
        check_three(nodes, reports, epochs * len(corpus.read_text().split()), tmp_path / "model")

    def begin_to_train(self, tmp_path, etcd, job, epochs, sync="bsp"):
        """Three nodes that train, by their numbers; the first leads."""
        options = ["--job", job, "--workers", "3", "--epochs", str(epochs), "--sync-words", "1000", "--dead-after", "5",
                   "--checkpoint-every", "0.2", "--sync", sync]
        nodes = {f"127.0.0.1:{port}": self.start(tmp_path, etcd, port, *options) for port in support.free_ports(3)}
        support.wait_for(lambda: len(roster(etcd, job)) == 3 and (tmp_path / "model" / "latest").exists(), "a checkpoint")
        return {number: nodes[address] for number, address in roster(etcd, job).items()}

    @pytest.mark.parametrize("fault, sync", [(signal.SIGKILL, "ring"), (signal.SIGSTOP, "bsp")], ids=["killed", "stopped"])
    def test_when_the_leader_is_killed_or_stopped_another_leads_and_saves(self, fault, sync, etcd, corpus, tmp_path):
        words = len(corpus.read_text().split())
        for epochs in [100, 400, 1600, 6400]:  # a run that is over before is made longer
            shutil.rmtree(tmp_path / "model", ignore_errors=True)
            job = f"led{epochs}"
            nodes = self.begin_to_train(tmp_path, etcd, job, epochs, sync)
            leader = nodes.pop("1")
            leader.send_signal(fault)
            over = lambda: all(node.poll() is not None for node in nodes.values())
            support.wait_for(lambda: over() or (1 < len(roster(etcd, job)) and "1" not in roster(etcd, job)), "another leader")
            went_on = not over()
            reports = [node.communicate(timeout=200) for node in nodes.values()]
            saved = files_of(tmp_path / "model")
            leader.send_signal(signal.SIGCONT)
            _, err = leader.communicate(timeout=support.TIMEOUT_S)
            if went_on:
                break
        assert [node.returncode for node in nodes.values()] == [0, 0], reports
        tokens = [json.loads(out)["tokens"] for out, _ in reports]
        assert max(tokens) == epochs * words and {json.loads(out)["nodes"] for out, _ in reports} == {2}, reports
        if fault == signal.SIGSTOP:
            assert leader.returncode == 1 and ("leads" in err and "nothing more is written here" in err), err
        assert files_of(tmp_path / "model") == saved  # the one that came back has not touched it
        support.run("nearest", tmp_path / "model", "aaax", exit=0)

    def test_a_leader_ends_when_another_has_its_key_and_not_when_only_its_roster_was_touched(self, etcd, corpus, tmp_path):
        options = ["--job", "twice", "--epochs", "1000000", "--dead-after", "5"]
        ports = support.free_ports(3)
        nodes = [self.start(tmp_path, etcd, port, *options) for port in ports[:2]]
        support.wait_for(lambda: len(roster(etcd, "twice")) == 2, "a cluster that trains")
        ask_etcd(etcd, "put", "twice", value=roster_text(etcd, "twice"))
        nodes.append(self.start(tmp_path, etcd, ports[2], *options))
        support.wait_for(lambda: len(roster(etcd, "twice")) == 3, "a third")
        leader = ports.index(int(roster(etcd, "twice")["1"].split(":")[1]))
        ask_etcd(etcd, "put", "twice", "leader", value="another")
        nodes[2].kill()
        _, err = nodes[leader].communicate(timeout=support.TIMEOUT_S)
        assert nodes[leader].returncode == 1 and "another node leads the job 'twice'" in err, err
        for node in nodes:
            node.kill()
            node.communicate()

    def test_one_with_other_options_cannot_join_and_is_told_why(self, etcd, corpus, tmp_path):
        ports = support.free_ports(3)
        nodes = [self.start(tmp_path, etcd, port, "--epochs", "1000000") for port in ports[:2]]
        support.wait_for(lambda: len(roster(etcd, "streamvec")) == 2, "a cluster that trains")
        late = self.start(tmp_path, etcd, ports[2], "--epochs", "1000000", "--window", "3")
        _, err = late.communicate(timeout=support.TIMEOUT_S)
        assert late.returncode == 1 and "--window 3" in err and "--window 5" in err, err
        for node in nodes:
            node.send_signal(signal.SIGTERM)
        for node in nodes:
            node.communicate(timeout=support.TIMEOUT_S)
            assert node.returncode == 0

    def test_a_wish_to_stop_is_heard_while_others_are_awaited(self, etcd, corpus, tmp_path):
        waiting = self.start(tmp_path, etcd, support.free_ports(1)[0], "--workers", "2", "--job", "lonely")
        support.await_handlers(waiting)
        waiting.send_signal(signal.SIGTERM)
        waiting.communicate(timeout=support.TIMEOUT_S)
        assert waiting.returncode == 0

    def test_an_etcd_without_space_is_named_by_one_that_comes_and_by_a_leader_that_loses_another(self, etcd, corpus, tmp_path):
        options = ["--epochs", "1000000", "--dead-after", "5", "--checkpoint-every", "0.2"]
        ports = support.free_ports(3)
        nodes = [self.start(tmp_path, etcd, port, *options) for port in ports[:2]]
        support.wait_for(lambda: (tmp_path / "model" / "latest").exists(), "a cluster that trains")
        leader = ports.index(int(roster(etcd, "streamvec")["1"].split(":")[1]))
        with no_space_in(etcd):
            nodes[1 - leader].kill()
            late = self.start(tmp_path, etcd, ports[2], *options)
            for node, words in [(late, ""), (nodes[leader], "node 1, which leads, could not write down who takes part: ")]:
                _, err = node.communicate(timeout=support.TIMEOUT_S)
                assert node.returncode == 1 and f"{words}etcd at {etcd} has no space left" in err, err
        nodes[1 - leader].communicate()
        support.run("nearest", tmp_path / "model", "aaax", exit=0)

    def test_one_whose_lease_has_ended_is_found_though_etcd_refuses_its_key_at_first(self, etcd, corpus, tmp_path):
        ports = support.free_ports(2)
        keys = lambda: call_etcd(etcd, "kv/range", key="AA==", range_end="AA==", keys_only=True).get("kvs", [])
        with refusing(etcd, "/kv/put", 2) as (way, start):
            first = self.start(tmp_path, way, ports[0], "--dead-after", "5")
            support.wait_for(lambda: len(keys()) == 1, "its key")
            start.set()
            for lease in call_etcd(etcd, "lease/leases")["leases"]:
                call_etcd(etcd, "lease/revoke", ID=lease["ID"])
            second = self.start(tmp_path, etcd, ports[1], "--dead-after", "5")
            for node in [first, second]:
                _, err = node.communicate(timeout=support.TIMEOUT_S)
                assert node.returncode == 0, err

    def test_an_etcd_that_is_not_there_is_named(self, corpus, tmp_path):
        port, nobody = support.free_ports(2)
        node = self.start(tmp_path, f"http://127.0.0.1:{nobody}", port)
        _, err = node.communicate(timeout=support.TIMEOUT_S)
        assert node.returncode == 1 and f"etcd at http://127.0.0.1:{nobody}" in err
