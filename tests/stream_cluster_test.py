"""Several nodes that train on streams: sources of their own, standard input, a broker that they share."""
import json
import shutil
import signal
import struct
import subprocess

import pytest
import support
from etcd_support import files_of, refusing, roster, roster_text
from stream_support import Redis, assert_each_counted_once, counts, planted_text

pytestmark = support.needs("gRPC")

QUICK = ["--vocab-max", "2000", "--dim", "16", "--min-count", "1", "--threads", "1", "--no-drift", "--evaluate-every", "0"]
HYBRID = ["--model", "hybrid"]
RBSG = ["--model", "rbsg", "--hidden", "32", "--char-dim", "8", "--batch", "512"]

GREEK = str.maketrans({chr(ord("a") + i): chr(ord("α") + i) for i in range(25)} | {"z": "ϑ"})


def quick(options):
    """Rows are pushed often; the character model's encoders go round after every batch."""
    return QUICK if "rbsg" in options else [*QUICK, "--sync-words", "1000"]


def launch(tmp_path, *source, **options):
    return subprocess.Popen([support.PROGRAM, "launch", "-n", "2", "--", "train", *source, "--out", "model", "--json", *quick(source)],
                            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def dates_in_replay(model):
    """When what the checkpoint has in replay was written: FORMATS.md, replay.bin."""
    replay = (support.newest(model) / "replay.bin").read_bytes()
    dates, at = [], 8 + 4 + 128
    while at < len(replay):
        _, _, _, date, _, _, _, _, slots, sentences, _ = struct.unpack_from("<3Qqdif4I", replay, at)
        dates.append(date)
        at += 64 + 4 * (slots + sentences)
    return dates


class TestStreamCluster:
    def test_nodes_with_files_of_their_own_have_one_vocabulary_and_one_model(self, tmp_path):
        texts = [support.topical_text(20_000, seed=seed) + f"only{seed} comes late\n" for seed in range(2)]
        for rank, text in enumerate(texts):
            (tmp_path / f"part-{rank}.txt").write_text(text)
        out, err = launch(tmp_path, "part-{rank}.txt", "--stream").communicate(timeout=support.TIMEOUT_S)
        report = json.loads(out)
        assert report["nodes"] == 2 and report["pushes"] > 0, err
        assert report["tokens"] == sum(len(text.split()) for text in texts)
        found = counts(tmp_path / "model")
        assert found["only0"] == found["only1"] == 1 and found["late"] == 2
        assert found["aaax"] == sum(text.split().count("aaax") for text in texts)
        nearest = json.loads(support.run("nearest", tmp_path / "model", "aaax", "-k", 5, "--json", exit=0).out)
        assert all(near["word"].startswith("a") for near in nearest[0]["neighbours"]), nearest

    def test_the_hybrid_model_makes_vectors_of_words_by_what_any_node_has_read(self, tmp_path):
        """Each node reads words of endings of its own, and the first one makes the generator."""
        lines, endings = support.text_of_endings(sentences=6000).splitlines(), support.ENDINGS
        for rank, own in enumerate([endings[:1], endings[1:]]):
            (tmp_path / f"part-{rank}.txt").write_text("".join(line + "\n" for line in lines if line.endswith(tuple(own))))
        out, err = launch(tmp_path, "part-{rank}.txt", "--stream", "--model", "hybrid").communicate(timeout=support.TIMEOUT_S)
        assert json.loads(out)["nodes"] == 2, err
        unseen = [support.stem(4711) + ending for ending in endings]
        for answer, ending in zip(json.loads(support.run("nearest", tmp_path / "model", *unseen, "--json", exit=0).out), endings):
            assert not answer["seen"]
            assert sum(near["word"].endswith(ending) for near in answer["neighbours"]) >= 9, answer

    @pytest.mark.parametrize("options", [[], ["--staleness", "0"], ["--ingest", "1"]], ids=["late", "waiting", "ingest"])
    def test_the_character_model_spells_what_any_node_has_read(self, options, tmp_path):
        """Each node reads words in letters of its own; where one only reads, the other meets none by itself."""
        latin, greek = support.topical_text(40_000, seed=1), support.topical_text(40_000, seed=2).translate(GREEK)
        (tmp_path / "part-0.txt").write_text(latin)
        (tmp_path / "part-1.txt").write_text(greek if "--ingest" not in options else latin + greek)
        out, err = launch(tmp_path, "part-{rank}.txt", "--stream", *RBSG, *options).communicate(timeout=support.TIMEOUT_S)
        report = json.loads(out)
        assert report["nodes"] == 2 and report["pushes"] > 10, err
        assert report["tokens"] == len(latin.split()) + len(greek.split())
        asked = ["aaax", "aaax".translate(GREEK)]
        for answer, (own, other) in zip(json.loads(support.run("nearest", tmp_path / "model", *asked, "-k", 5, "--json", exit=0).out),
                                        [(latin, greek), (greek, latin)]):
            near = {each["word"] for each in answer["neighbours"]}
            assert near <= set(own.split()) - set(other.split()), answer

    def test_rows_of_letters_that_only_another_node_meets_come_to_the_one_that_saves(self, tmp_path):
        """Where they stayed there, the Greek text's loss is 4.8 and more; its letters are new while both train.

        It is the longer one: a model that ends with words in other letters alone forgets these. On a busy machine one node may
        be so slow that it does so all the same; not each time.
        """
        (tmp_path / "part-0.txt").write_text(support.topical_text(30_000, seed=0))
        (tmp_path / "part-1.txt").write_text(support.topical_text(40_000, seed=1).translate(GREEK))
        (tmp_path / "unseen.txt").write_text(support.topical_text(10_000, seed=7).translate(GREEK))
        losses = []
        while len(losses) < 3 and not any(loss < 3 for loss in losses):
            shutil.rmtree(tmp_path / "model", ignore_errors=True)
            out, err = launch(tmp_path, "part-{rank}.txt", "--stream", *RBSG, "--staleness", "0", "--replay-ratio",
                              "4").communicate(timeout=support.TIMEOUT_S)
            assert json.loads(out)["nodes"] == 2, err
            measured = support.run("eval", tmp_path / "model", "--text", tmp_path / "unseen.txt", "--json", exit=0)
            losses.append(json.loads(measured.out)["loss"])
        assert losses[-1] < 3, losses

    def test_one_node_reads_standard_input_and_another_a_file(self, tmp_path):
        nodes = ",".join(f"127.0.0.1:{port}" for port in support.free_ports(2))
        (tmp_path / "b.txt").write_text("words of a file\n" * 500)
        command = [support.PROGRAM, "train", "--out", "model", "--nodes", nodes, *quick([])]
        second = subprocess.Popen([*command, "b.txt", "--stream", "--rank", "1"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        first = subprocess.run([*command, "-", "--rank", "0"], cwd=tmp_path, input="words that are piped\n" * 300,
                               capture_output=True, text=True, timeout=support.TIMEOUT_S)
        assert first.returncode == 0, first.stderr
        assert second.wait(timeout=support.TIMEOUT_S) == 0, second.stderr.read()
        found = counts(tmp_path / "model")
        assert found["words"] == 800 and found["piped"] == 300 and found["file"] == 500

    def test_a_redis_group_that_nodes_share_gives_each_entry_to_one_of_them(self, tmp_path):
        server = Redis()
        try:
            for number in range(150):
                server.add("news", planted_text("doc", number))
            process = launch(tmp_path, f"redis://127.0.0.1:{server.port}/news?group=nodes&shared=1&consumer=node{{rank}}",
                             "--checkpoint-every", "0.1")
            support.wait_for(lambda: counts(tmp_path / "model").get("tells") == 150 or process.poll() is not None, "all entries")
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=support.TIMEOUT_S)
            assert process.returncode == 0, err
            assert_each_counted_once(tmp_path / "model", "doc", 150)
        finally:
            server.close()

    def test_a_node_that_only_reads_and_one_that_only_trains(self, tmp_path):
        (tmp_path / "part-1.txt").write_text(support.topical_text(20_000))
        (tmp_path / "part-0.txt").write_text("never read\n")
        out, err = launch(tmp_path, "part-{rank}.txt", "--stream", "--ingest", "1").communicate(timeout=support.TIMEOUT_S)
        assert json.loads(out)["tokens"] == len((tmp_path / "part-1.txt").read_text().split()), err
        assert "never" not in counts(tmp_path / "model")
        nearest = json.loads(support.run("nearest", tmp_path / "model", "aaax", "-k", 5, "--json", exit=0).out)
        assert all(near["word"].startswith("a") for near in nearest[0]["neighbours"]), nearest

    def test_a_record_that_a_node_withdraws_is_its_own_where_another_calls_one_the_same(self, tmp_path):
        """Both read a file of the same name, each in a folder of its own."""
        text = "words that come with others in every record of the day " * 6
        nodes = ",".join(f"127.0.0.1:{port}" for port in support.free_ports(3))
        first = {1: 1_500_000_000, 2: 1_600_000_000}
        running = []
        for rank in range(3):
            folder = tmp_path / f"node{rank}"
            folder.mkdir()
            lines = [f"first\t{first[rank]}\t{text * 100}\n"] if rank > 0 else []  # long: it waits for its words' slots
            lines += [f"{number}\t{first[rank]}\t{text}\n" for number in range(400) if rank > 0]
            lines += [f"{number}\t\t\tgone\n" for number in range(400) if rank == 2]
            (folder / "news.tsv").write_text("".join(lines))
            running.append(subprocess.Popen([support.PROGRAM, "train", "tsv:news.tsv?id=1&time=2&text=3&delete=4", "--stream", "--out",
                                             tmp_path / "model", "--nodes", nodes, "--rank", str(rank), "--ingest", "2", *quick([])],
                                            cwd=folder, stderr=subprocess.PIPE, text=True))
        for process in running:
            _, err = process.communicate(timeout=support.TIMEOUT_S)
            assert process.returncode == 0, err
        dates = dates_in_replay(tmp_path / "model")
        assert dates.count(first[1]) >= 300
        assert dates.count(first[2]) < 100, "only the long one"

    def test_sources_that_all_nodes_name_are_divided_and_go_on_where_they_stood_with_other_nodes(self, tmp_path):
        texts = [f"part-{number}.txt" for number in range(5)]
        for number, text in enumerate(texts):
            (tmp_path / text).write_text("words of all\n" * 100 + f"only{number} here\n")
        for nodes, options in [(2, []), (3, []), (3, ["--ingest", "2"])]:
            done = support.run("launch", "-n", nodes, "--", "train", *texts, "--out", "model", "--json", "--stream",
                               *quick(texts), "--divide", *options, cwd=tmp_path, exit=0)
            assert json.loads(done.out)["vocab"] == 9, done.err
            found = counts(tmp_path / "model")
            assert found["all"] == 500 and [found[f"only{number}"] for number in range(5)] == [1] * 5, (nodes, options)

    def test_sources_of_which_some_node_would_have_none_are_misuse(self, tmp_path):
        done = support.run("launch", "-n", 3, "--", "train", "a.txt", "b.txt", "--out", "model", "--stream", *quick([]),
                           "--divide", cwd=tmp_path, exit=2)
        assert "--ingest 2" in done.err
        done = support.run("train", "a.txt", "b.txt", "--out", "model", "--stream", *quick([]), "--divide", "--nodes",
                           "127.0.0.1:1,127.0.0.1:2", "--servers", 2, cwd=tmp_path, exit=2)
        assert "at least one has to train" in done.err

    def test_nodes_that_divide_different_lists_do_not_begin(self, tmp_path):
        nodes = ",".join(f"127.0.0.1:{port}" for port in support.free_ports(2))
        for name in ["a.txt", "b.txt", "c.txt"]:
            (tmp_path / name).write_text("some words\n")
        ran = [subprocess.Popen([support.PROGRAM, "train", *sources, "--out", "model", "--stream", *quick([]), "--divide", "--nodes",
                                 nodes, "--rank", str(rank)], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
               for rank, sources in enumerate([["a.txt", "b.txt"], ["a.txt", "c.txt"]])]
        _, complaint = ran[1].communicate(timeout=support.TIMEOUT_S)
        ran[0].kill()
        ran[0].communicate()
        assert ran[1].returncode == 1
        assert "--divide of 2 sources" in complaint

    def test_nodes_that_go_on_count_nothing_twice(self, tmp_path):
        for rank in range(2):
            (tmp_path / f"part-{rank}.txt").write_text("words of both\n" * 200 + f"word of {rank}\n")
        for _ in range(2):
            out, err = launch(tmp_path, "part-{rank}.txt", "--stream").communicate(timeout=support.TIMEOUT_S)
            assert json.loads(out)["nodes"] == 2, err
        found = counts(tmp_path / "model")
        assert found["both"] == 400 and found["word"] == 2


class TestElasticStreams:
    def start(self, tmp_path, etcd, job, port, number, *options):
        """A node that reads a file of its own, which grows, and has words of its own."""
        if not (tmp_path / f"part-{number}").exists():
            (tmp_path / f"part-{number}").write_text("words of all nodes\n" * 100 + f"only{number} at first\n")
        return subprocess.Popen([support.PROGRAM, "train", f"tail:part-{number}?from=start", "--out", "model", "--json", *quick(options),
                                 "--checkpoint-every", "0.2", "--etcd", etcd, "--job", job, "--address", f"127.0.0.1:{port}",
                                 "--workers", "3", "--dead-after", "5", *options], cwd=tmp_path, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def begin(self, tmp_path, etcd, job, *options):
        """Three nodes that train: their processes and the numbers of their files, by the numbers that they have in etcd."""
        nodes = {f"127.0.0.1:{port}": (self.start(tmp_path, etcd, job, port, number, *options), number)
                 for number, port in enumerate(support.free_ports(3))}
        support.wait_for(lambda: counts(tmp_path / "model").get("nodes") == 300, "a checkpoint with the text of all")
        latest = tmp_path / "model" / "latest"
        counted = latest.read_text()
        support.wait_for(lambda: latest.read_text() != counted, "the next one, in which sources stand behind it, too")
        return {number: nodes[address] for number, address in roster(etcd, job).items()}

    def add_and_await(self, tmp_path, nodes, word):
        """Each has a word more, and the model that another has saved has all of these."""
        for _, number in nodes:
            with open(tmp_path / f"part-{number}", "a") as part:
                part.write(f"{word}{number} comes later than words of all\n" * 3)
        found = lambda: counts(tmp_path / "model")
        support.wait_for(lambda: all(found().get(f"{word}{number}") == 3 for _, number in nodes), "a model with later words")

    def stop(self, etcd, job, nodes):
        """Ctrl-C for the one that leads now, which ends all."""
        leader = roster_text(etcd, job).split()[2]
        nodes[leader][0].send_signal(signal.SIGINT)
        reports = {number: node.communicate(timeout=support.TIMEOUT_S) for number, (node, _) in nodes.items()}
        assert [node.returncode for node, _ in nodes.values()] == [0] * len(nodes), reports
        return json.loads(reports[leader][0])

    def test_why_a_newcomer_had_to_wait_is_in_the_report(self, etcd, tmp_path):
        with refusing(etcd, "/kv/txn", 30) as (way, start):  # tried four times a second: for longer than --dead-after
            nodes = self.begin(tmp_path, way, "noted")
            start.set()
            joined = self.start(tmp_path, etcd, "noted", support.free_ports(1)[0], 3)
            support.wait_for(lambda: len(roster(etcd, "noted")) == 4, "a fourth node")
            nodes |= {new: (joined, 3) for new in set(roster(etcd, "noted")) - set(nodes)}
            notes = self.stop(etcd, "noted", nodes)["notes"]
        assert any("could not write down who takes part" in note for note in notes), notes

    def test_one_that_was_killed_joins_again_where_its_text_stood(self, etcd, tmp_path):
        nodes = self.begin(tmp_path, etcd, "again", *HYBRID)
        killed, number = nodes.pop("2")
        address = roster(etcd, "again")["2"]
        killed.kill()
        killed.communicate()
        joined = self.start(tmp_path, etcd, "again", address.split(":")[1], number, *HYBRID)
        known = set(nodes)
        support.wait_for(lambda: set(roster(etcd, "again")) - known - {"2"} or joined.poll() is not None, "a new node")
        nodes |= {new: (joined, number) for new in set(roster(etcd, "again")) - known - {"2"}}
        self.add_and_await(tmp_path, nodes.values(), "later")
        assert self.stop(etcd, "again", nodes)["nodes"] == 3
        assert counts(tmp_path / "model")["nodes"] == 300  # its old text was not counted again
        support.run("vector", tmp_path / "model", "nodesandwords", exit=0)

    @pytest.mark.parametrize("fault, model", [(signal.SIGKILL, HYBRID), (signal.SIGKILL, RBSG), (signal.SIGSTOP, [])],
                             ids=["killed-hybrid", "killed-rbsg", "stopped"])
    def test_when_the_leader_is_killed_or_stopped_another_has_the_words_and_saves(self, fault, model, etcd, tmp_path):
        nodes = self.begin(tmp_path, etcd, "led", *model)
        leader, lost = nodes.pop("1")
        leader.send_signal(fault)
        self.add_and_await(tmp_path, nodes.values(), "later")
        report = self.stop(etcd, "led", nodes)
        assert report["nodes"] == 2 and report["stopped"]
        found = counts(tmp_path / "model")
        assert found[f"only{lost}"] == 1 and found["nodes"] >= 200, found  # what only the lost one had counted may be lost
        cursors = json.loads((tmp_path / "model" / (tmp_path / "model" / "latest").read_text().strip() / "cursors.json").read_text())
        places = [cursors, *cursors["nodes"].values()]
        assert {source["name"] for place in places for source in place["sources"]} == {f"tail:part-{i}?from=start" for i in range(3)}
        support.run("vector", tmp_path / "model", "nodesandwords" if model else "nodes", exit=0)
        saved = files_of(tmp_path / "model")
        leader.send_signal(signal.SIGCONT)
        _, err = leader.communicate(timeout=support.TIMEOUT_S)
        if fault == signal.SIGSTOP:
            assert leader.returncode == 1 and "nothing more is written here" in err, err
        assert files_of(tmp_path / "model") == saved  # the one that came back has not touched it
