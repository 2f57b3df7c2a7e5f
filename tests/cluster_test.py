"""Several nodes that train together: launch, the schemes, death of a node, other options than the leader's."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
import support


SMALL_RBSG = ["--model", "rbsg", "--dim", "16", "--hidden", "32", "--char-dim", "8", "--batch", "512"]
MARKS_AND_BYTES = 258  # rows of characters that every character model has


def start_nodes(tmp_path, count, *options, per_node=None):
    """Nodes started by hand, as on several machines; the first is the leader."""
    nodes = ",".join(f"127.0.0.1:{port}" for port in support.free_ports(count))
    running = []
    for rank in range(count):
        extra = per_node(rank) if per_node else []
        command = [support.PROGRAM, "train", "corpus.txt", "--out", "model", "--threads", "1", "--nodes", nodes, "--rank",
                   str(rank), "--json", *map(str, options), *map(str, extra)]
        running.append(subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    return running


def start_and_kill(tmp_path, count, victim, *options):
    """Nodes of which one is killed in the middle, after a first checkpoint; a run that is over before is made longer."""
    for epochs in [100, 400, 1600, 6400]:
        nodes = start_nodes(tmp_path, count, "--dim", 64, "--epochs", epochs, "--dead-after", 6, "--sync-words", 1000,
                            "--checkpoint-every", 0.2, *options)
        support.wait_for(lambda: (tmp_path / "model" / "latest").exists() or nodes[0].poll() is not None, "a checkpoint")
        nodes[victim].send_signal(signal.SIGKILL)
        others = [node for node in nodes if node != nodes[victim]]
        if nodes[victim].wait() == -signal.SIGKILL and all(node.poll() is None for node in others):
            return nodes
        for node in others:
            node.kill()
            node.wait()
        shutil.rmtree(tmp_path / "model")
    raise AssertionError("no run was long enough")


def assert_letters_were_trained(model):
    """Every letter of the text; only marks and bytes have rows before it is read."""
    means = support.tensor_rows(model, "rbsg.centre.characters.adam.mean")
    assert len(means) > MARKS_AND_BYTES and all(any(row) for row in means[MARKS_AND_BYTES:])


def progress_saved(tmp_path):
    """Of the newest checkpoint, which comes and goes meanwhile; nothing where there is none."""
    try:
        return json.loads((support.newest(tmp_path / "model") / "state.json").read_text())["state"]["progress"]
    except OSError:
        return {}


def words_of(pid):
    """What a process was started with; nothing once it has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode().split("\0")[:-1]
    except FileNotFoundError:
        return []


@support.needs("gRPC")
class TestLaunch:
    @pytest.mark.parametrize("sync", ["bsp", "backup", "ssp", "softsync", "async", "ring", "hybrid", "auto", "sandblaster"])
    def test_every_scheme_ends_with_one_model_of_all_the_text(self, sync, corpus, tmp_path):
        done = subprocess.run([support.PROGRAM, "launch", "-n", "3", "--", "train", "corpus.txt", "--out", "model", "--dim",
                               "32", "--epochs", "2", "--sync", sync, "--sync-words", "2000", "--json"], cwd=tmp_path,
                              capture_output=True, text=True, timeout=support.TIMEOUT_S)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert report["nodes"] == 3 and report["pushes"] > 0 and report["bytes_sent"] > 0  # how many is a matter of time
        assert report["tokens"] == 2 * len(corpus.read_text().split())
        assert 0 <= report["staleness_most"] <= (2 if sync == "ssp" else report["pushes"])
        nearest = json.loads(support.run("nearest", tmp_path / "model", "aaax", "-k", 5, "--json", exit=0).out)
        assert len(nearest[0]["neighbours"]) == 5

    @pytest.mark.parametrize("sync", ["hybrid", "ring"])
    def test_the_hybrid_model_knows_words_that_only_another_node_has_met(self, sync, tmp_path):
        """Each node trains on every other piece of text, and the first one writes: words of single pieces tell."""
        pieces = [f"{word} aaax aaay aaaz\n" * 120 + support.topical_text(30_000, seed=seed)
                  for seed, word in enumerate(["ququqo", "wewewi", "ririru", "totota"])]
        (tmp_path / "corpus.txt").write_text("".join(pieces))
        done = subprocess.run([support.PROGRAM, "launch", "-n", "2", "--", "train", "corpus.txt", "--out", "model", "--model",
                               "hybrid", "--dim", "16", "--threads", "1", "--epochs", "9", "--sync", sync, "--sync-words", "2000"],
                              cwd=tmp_path, capture_output=True, text=True, timeout=support.TIMEOUT_S)
        assert done.returncode == 0, done.stderr
        words = ["ququqo", "wewewi", "ririru", "totota"]
        for each in json.loads(support.run("nearest", tmp_path / "model", *words, "-k", 8, "--json", exit=0).out):
            company = {"aaax", "aaay", "aaaz", *words} - {each["word"]}  # words of the same company are as near
            assert company & {near["word"] for near in each["neighbours"]}, each
        support.run("vector", tmp_path / "model", "neverseen", exit=0)

    @pytest.mark.parametrize("rank", [0, 2])
    def test_the_character_model_is_trained_by_a_ring(self, rank, tmp_path):
        (tmp_path / "corpus.txt").write_text(support.topical_text(20_000))
        done = subprocess.run([support.PROGRAM, "launch", "-n", "2", "--", "train", "corpus.txt", "--out", "model",
                               *SMALL_RBSG, "--epochs", "2", "--sync-words", "1000", "--threads", "1", "--ring-rank",
                               str(rank), "--json"], cwd=tmp_path, capture_output=True, text=True, timeout=support.TIMEOUT_S)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert report["nodes"] == 2 and report["pushes"] > 1
        assert report["tokens"] == 2 * len((tmp_path / "corpus.txt").read_text().split())
        nearest = json.loads(support.run("nearest", tmp_path / "model", "neverseen", "--json", exit=0).out)
        assert len(nearest[0]["neighbours"]) == 10

    @pytest.mark.parametrize("options", [[], ["--codec", "fp16"], ["--staleness", "0"]], ids=["few-bits", "bf16", "apart"])
    def test_every_batch_of_the_character_model_can_wait_for_the_round_of_the_last(self, options, tmp_path):
        (tmp_path / "corpus.txt").write_text(support.topical_text(20_000))
        done = subprocess.run([support.PROGRAM, "launch", "-n", "2", "--", "train", "corpus.txt", "--out", "model",
                               *SMALL_RBSG, "--threads", "1", *options, "--json"], cwd=tmp_path, capture_output=True,
                              text=True, timeout=support.TIMEOUT_S)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        batches_of_a_node = report["pairs"] / 512 / 2
        assert report["pushes"] >= 0.95 * batches_of_a_node  # without: rounds take longer than such batches
        assert_letters_were_trained(tmp_path / "model")

    def test_owners_of_rows_that_do_not_train(self, corpus, tmp_path):
        done = subprocess.run([support.PROGRAM, "launch", "-n", "2", "--servers", "1", "--", "train", "corpus.txt", "--out",
                               "model", "--dim", "16", "--json"], cwd=tmp_path, capture_output=True, text=True, timeout=support.TIMEOUT_S)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["nodes"] == 3

    def test_a_wish_to_stop_ends_all_nodes_however_early_it_comes(self, corpus, tmp_path):
        for delay in [0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3]:
            process = support.start("launch", "-n", 2, "--", "train", "corpus.txt", "--out", "model", "--epochs", 1_000_000,
                                    "--threads", 1, cwd=tmp_path)
            support.wait_for(lambda: len(support.children_of(process.pid)) == 2, "two nodes")
            time.sleep(delay)
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=support.TIMEOUT_S)
            assert process.returncode == 0 and b"was ended by" not in err, err
            assert not any(waited in err for waited in (b"did not come", b"was not heard")), err  # for the other, in vain

    def test_a_stopped_run_goes_on_with_another_number_of_nodes_and_the_rate_of_all(self, corpus, tmp_path):
        epochs, words = 40, len(corpus.read_text().split())
        command = lambda nodes: ["launch", "-n", nodes, "--", "train", "corpus.txt", "--out", "model", "--epochs", epochs,
                                 "--dim", 16, "--threads", 1, "--json", "--checkpoint-every", 0.1]
        process = support.start(*command(2), cwd=tmp_path)
        support.wait_for(lambda: (tmp_path / "model" / "latest").exists() or process.poll() is not None, "a checkpoint")
        process.send_signal(signal.SIGTERM)
        stopped = json.loads(process.communicate(timeout=support.TIMEOUT_S)[0])
        assert process.returncode == 0
        report = json.loads(support.run(*command(3), cwd=tmp_path, exit=0).out)
        assert report["lr"] < 1e-3 and report["nodes"] == 3
        assert not stopped["stopped"] or report["tokens"] == epochs * words

    def start_and_kill_with_gaps(self, tmp_path, command):
        """Kills a cluster of three, one of which was slow: the epochs of a run that was long enough for a checkpoint with
        pieces that others had finished after some of that one's."""
        for epochs in [200, 800, 3200]:
            process = support.start("launch", "-n", 3, "--", *command(epochs), "--sync", "async", cwd=tmp_path)
            support.wait_for(lambda: progress_saved(tmp_path) or process.poll() is not None, "a checkpoint")
            nodes = support.children_of(process.pid)
            if len(nodes) == 3:
                os.kill(nodes[1], signal.SIGSTOP)
            support.wait_for(lambda: progress_saved(tmp_path).get("finished_ahead") or process.poll() is not None or
                             progress_saved(tmp_path).get("finished"), "a checkpoint with gaps")
            for node in nodes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(node, signal.SIGKILL)
            process.communicate(timeout=support.TIMEOUT_S)
            if progress_saved(tmp_path).get("finished_ahead"):
                return epochs
            shutil.rmtree(tmp_path / "model")
        raise AssertionError("no run was long enough")

    def test_a_killed_run_goes_on_by_any_number_of_nodes_and_counts_every_piece_once(self, tmp_path):
        (tmp_path / "corpus.txt").write_text(support.topical_text(30_000))
        words = len((tmp_path / "corpus.txt").read_text().split())
        command = lambda epochs: ["train", "corpus.txt", "--out", "model", "--epochs", epochs, "--dim", 8, "--threads", 1,
                                  "--json", "--checkpoint-every", 0.1]
        epochs = self.start_and_kill_with_gaps(tmp_path, command)
        shutil.copytree(tmp_path / "model", tmp_path / "killed", symlinks=True)
        # Another run does not pass over what this one has finished.
        for nodes, epochs_now in [(1, epochs), (2, epochs), (1, 2), (2, 3)]:
            shutil.rmtree(tmp_path / "model")
            shutil.copytree(tmp_path / "killed", tmp_path / "model", symlinks=True)
            together = [] if nodes == 1 else ["launch", "-n", nodes, "--"]
            report = json.loads(support.run(*together, *command(epochs_now), cwd=tmp_path, exit=0).out)
            assert report["tokens"] == epochs_now * words and report["lr"] < 1e-3
            saved = progress_saved(tmp_path)
            assert saved["tokens"] == report["tokens"] and saved["finished"] and saved["finished_ahead"] == []

    def start_long(self, tmp_path, *options):
        """A cluster of two that trains for ever: the process and those of its nodes."""
        process = support.start("launch", "-n", 2, "--", "train", "corpus.txt", "--out", "model", "--epochs", 1_000_000, "--dim",
                                16, "--checkpoint-every", 0.2, *options, cwd=tmp_path)
        support.wait_for(lambda: (tmp_path / "model" / "latest").exists(), "a checkpoint")
        return process, support.children_of(process.pid)

    def test_a_node_that_is_stopped_keeps_nobody_from_ending(self, corpus, tmp_path):
        process, nodes = self.start_long(tmp_path, "--dead-after", 5)
        os.kill(nodes[1], signal.SIGSTOP)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=support.TIMEOUT_S)
        assert process.returncode == 0, err

    def test_a_wish_to_stop_is_answered_once_for_all_nodes(self, corpus, tmp_path):
        process, _ = self.start_long(tmp_path)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=support.TIMEOUT_S)
        assert process.returncode == 0 and err.count(b"the model is being saved") == 1, err

    def test_nodes_end_with_launch_however_it_ends(self, corpus, tmp_path):
        process, nodes = self.start_long(tmp_path)
        process.kill()
        process.wait()
        support.wait_for(lambda: not any(words_of(node) for node in nodes), "the nodes' end")
        process.communicate()

    def test_a_node_that_fails_before_the_others_can_begin_ends_all_at_once(self, tmp_path):
        (tmp_path / "part0.txt").write_text(support.topical_text(1_000))
        done = support.run("launch", "-n", 2, "--", "train", "part{rank}.txt", "--stream", "--vocab-max", 99, "--out", "model",
                           cwd=tmp_path, exit=1)
        assert "part1.txt" in done.err
        assert not any(waited in done.err for waited in ("did not come", "was not heard")), "it has waited for the other in vain"
        assert "saved" not in done.err, "nobody wished to stop, and there is nothing to save"

    def test_what_train_is_told_counts_for_launch(self, corpus, tmp_path):
        (tmp_path / "run.toml").write_text("servers = 1\nthreads = 1\n")
        process, nodes = self.start_long(tmp_path, "--config", "run.toml")
        assert len(nodes) == 3 and not any("--threads" in words_of(node) for node in nodes)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=support.TIMEOUT_S)
        done = support.run("launch", "-n", 2, "--", "train", "--out", "other", "--dim", 16, "--json", "--servers", 1, "--",
                           "corpus.txt", cwd=tmp_path, exit=0)
        assert json.loads(done.out)["nodes"] == 3

    @pytest.mark.parametrize("options, words", [(["--servers", 1], "leave one of them out"), (["--rank", 1], "--rank; leave")])
    def test_what_train_is_told_otherwise_than_launch_is_refused(self, options, words, corpus, tmp_path):
        done = support.run("launch", "-n", 2, "--servers", 2, "--", "train", "corpus.txt", "--out", "model", *options, cwd=tmp_path,
                           exit=2)
        assert words in done.err and not (tmp_path / "model").exists()

    def test_misuse_of_train_is_told_once(self, tmp_path):
        done = support.run("launch", "-n", 2, "--", "train", "corpus.txt", "--out", "model", "--dimm", 3, cwd=tmp_path, exit=2)
        assert done.err.count("--dimm") == 1

    def test_only_train_can_be_launched(self, tmp_path):
        done = support.run("launch", "-n", 2, "--", "eval", tmp_path, exit=2)
        assert "launch runs train" in done.err


@support.needs("gRPC")
class TestNodes:
    def test_the_model_of_two_nodes_is_nearly_that_of_one(self, corpus, tmp_path):
        """By held-out loss. How often nodes push is a matter of time: a run with few pushes is made longer."""
        (tmp_path / "held.txt").write_text(support.topical_text(20_000, seed=9))
        for epochs in [12, 50, 200]:
            nodes = start_nodes(tmp_path, 2, "--dim", 32, "--epochs", epochs, "--sync-words", 1000)
            out, err = nodes[0].communicate(timeout=support.TIMEOUT_S)
            assert nodes[0].returncode == 0 and nodes[1].wait(timeout=support.TIMEOUT_S) == 0, err
            if json.loads(out)["pushes"] >= 30:
                break
            shutil.rmtree(tmp_path / "model")
        else:
            pytest.fail(f"too few pushes to compare: {out}")
        support.run("train", tmp_path / "corpus.txt", "--out", tmp_path / "one", "--dim", 32, "--epochs", epochs, "--threads", 1,
                    exit=0)
        loss = {name: json.loads(support.run("eval", tmp_path / name, "--text", tmp_path / "held.txt", "--json",
                                             exit=0).out)["loss"] for name in ["model", "one"]}
        assert loss["model"] < 1.15 * loss["one"], out

    def secured(self, tmp_path, nodes):
        """The certificates that docs/CLUSTER.md makes, for nodes named by address; start() with one node's authority."""
        page = (support.ROOT / "docs/CLUSTER.md").read_text()
        recipe = next(block for block in re.findall(r"```sh\n(.*?)```", page, re.S) if "openssl" in block)
        for folder in ["ours", "theirs"]:
            (tmp_path / folder).mkdir()
            subprocess.run(["sh", "-ec", recipe.replace("host-a host-b", " ".join(nodes)).replace("DNS:", "IP:")],
                           cwd=tmp_path / folder, check=True, capture_output=True)
        addresses = ",".join(f"{node}:{port}" for node, port in zip(nodes, support.free_ports(len(nodes))))

        def start(rank, signed_by, *options):
            own = tmp_path / signed_by / nodes[rank]
            return subprocess.Popen([support.PROGRAM, "train", "corpus.txt", "--out", "model", "--dim", "16", "--threads", "1",
                                     "--nodes", addresses, "--rank", str(rank), "--cluster-ca", tmp_path / "ours/ca.pem",
                                     "--cluster-certificate", f"{own}.pem", "--cluster-key", f"{own}.key", "--json",
                                     *options], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return start

    def test_nodes_with_the_certificates_of_the_manual_train_one_model_and_one_of_another_authority_is_not_heard(
            self, corpus, tmp_path):
        start = self.secured(tmp_path, ["127.0.0.1", "127.0.0.2"])
        nodes = [start(0, "ours"), start(1, "theirs")]
        time.sleep(3)  # longer than the two need for everything
        assert nodes[0].poll() is None  # it waits
        nodes[1].kill()
        nodes[1].communicate()
        nodes[1] = start(1, "ours")
        out, err = nodes[0].communicate(timeout=support.TIMEOUT_S)
        assert nodes[0].returncode == 0 and nodes[1].wait(timeout=support.TIMEOUT_S) == 0, err
        nodes[1].communicate()
        assert json.loads(out)["nodes"] == 2 and json.loads(out)["tokens"] == len(corpus.read_text().split())

    def test_nodes_with_other_options_are_refused_with_the_reason(self, corpus, tmp_path):
        nodes = start_nodes(tmp_path, 2, "--dim", 16, per_node=lambda rank: ["--seed", 1 + rank])
        _, err = nodes[1].communicate(timeout=support.TIMEOUT_S)
        nodes[0].kill()
        nodes[0].communicate()
        assert nodes[1].returncode == 1
        assert "give all nodes the same text and options" in err

    @pytest.mark.parametrize("count", [2, 3])
    def test_training_goes_on_when_a_node_is_killed_and_says_so(self, count, corpus, tmp_path):
        nodes = start_and_kill(tmp_path, count, victim=count - 1)
        out, err = nodes[0].communicate(timeout=200)
        assert nodes[0].returncode == 0, err
        assert json.loads(out)["nodes"] == count - 1 and json.loads(out)["bytes_sent"] > 0
        assert json.loads(out)["notes"] == [f"node {count} fell silent and was left out"]
        assert count == 2 or nodes[1].wait(timeout=support.TIMEOUT_S) == 0

    def test_nodes_that_are_all_stopped_for_a_while_go_on(self, corpus, tmp_path):
        nodes = start_nodes(tmp_path, 2, "--dim", 16, "--epochs", 1_000_000, "--dead-after", 5, "--checkpoint-every", 1)
        support.wait_for(lambda: (tmp_path / "model" / "latest").exists(), "a checkpoint")
        for wish, pause_s in [(signal.SIGSTOP, 6), (signal.SIGCONT, 2), (signal.SIGTERM, 0)]:
            for node in nodes:
                node.send_signal(wish)
            time.sleep(pause_s)
        (out, err), (_, others) = [node.communicate(timeout=support.TIMEOUT_S) for node in nodes]
        assert nodes[0].returncode == 0 and nodes[1].returncode == 0, err + others
        assert json.loads(out)["nodes"] == 2 and json.loads(out)["notes"] == []

    def test_a_ring_goes_on_when_a_node_is_killed_and_trains_on_all_of_the_text(self, corpus, tmp_path):
        nodes = start_and_kill(tmp_path, 3, 1, "--sync", "ring")
        (out, err), (_, others) = nodes[0].communicate(timeout=200), nodes[2].communicate(timeout=support.TIMEOUT_S)
        assert nodes[0].returncode == 0 and nodes[2].returncode == 0, err + others
        epochs = int(nodes[0].args[nodes[0].args.index("--epochs") + 1])
        assert json.loads(out)["nodes"] == 2 and json.loads(out)["tokens"] == epochs * len(corpus.read_text().split())
        support.run("nearest", tmp_path / "model", "aaax", exit=0)

    def test_the_character_models_ring_goes_on_when_a_node_is_killed(self, tmp_path):
        (tmp_path / "corpus.txt").write_text(support.topical_text(20_000))
        nodes = start_nodes(tmp_path, 3, *SMALL_RBSG, "--epochs", 1_000_000, "--dead-after", 6, "--checkpoint-every", 0.2)
        trained = lambda: progress_saved(tmp_path).get("tokens", 0)
        support.wait_for(lambda: trained() > 0, "a checkpoint")
        nodes[1].kill()
        nodes[1].communicate()
        before = trained()
        support.wait_for(lambda: trained() > before + 50_000, "training without it")
        nodes[0].send_signal(signal.SIGTERM)
        (out, err), (_, others) = nodes[0].communicate(timeout=support.TIMEOUT_S), nodes[2].communicate(timeout=support.TIMEOUT_S)
        assert nodes[0].returncode == 0 and nodes[2].returncode == 0, err + others
        assert json.loads(out)["nodes"] == 2 and json.loads(out)["notes"] == ["node 2 fell silent and was left out"]
        assert_letters_were_trained(tmp_path / "model")

    def test_nodes_end_with_an_error_when_the_leader_is_killed(self, corpus, tmp_path):
        nodes = start_and_kill(tmp_path, 2, victim=0)
        _, err = nodes[1].communicate(timeout=support.TIMEOUT_S)
        assert nodes[1].returncode == 1
        assert "node 1, which leads, was not heard" in err


@support.needs("MPI")
@pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no mpirun (openmpi-bin)")
class TestRanks:
    """The same train, started by mpirun."""

    def mpirun(self, tmp_path, ranks, *options, text="corpus.txt"):
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", ranks, support.PROGRAM, "train", text, "--out",
                   "model", "--threads", 1, "--json", *options]
        # Open MPI leaves memory behind when it ends; leaks are looked for in tests without it.
        environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
        return subprocess.Popen([str(word) for word in command], cwd=tmp_path, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, start_new_session=True, env=environment)

    def test_ranks_train_one_model_and_the_first_speaks_for_all(self, corpus, tmp_path):
        running = self.mpirun(tmp_path, 3, "--dim", 16, "--epochs", 2, "--sync-words", 2000)
        out, err = running.communicate(timeout=200)
        assert running.returncode == 0, err
        report = json.loads(out)
        assert report["nodes"] == 3 and report["bytes_sent"] > 0
        assert report["tokens"] == 2 * len(corpus.read_text().split())
        support.run("nearest", tmp_path / "model", "aaax", exit=0)

    def test_a_killed_rank_ends_all_and_the_checkpoint_goes_on(self, corpus, tmp_path):
        options = ["--dim", 64, "--epochs", 2000, "--sync-words", 1000, "--checkpoint-every", 0.2]
        running = self.mpirun(tmp_path, 2, *options)
        support.wait_for(lambda: (tmp_path / "model" / "latest").exists() or running.poll() is not None, "a checkpoint")
        assert running.poll() is None, running.communicate()
        os.kill(support.children_of(running.pid)[-1], signal.SIGKILL)
        running.communicate(timeout=support.TIMEOUT_S)
        assert running.returncode != 0
        support.run("nearest", tmp_path / "model", "aaax", exit=0)
        more = self.mpirun(tmp_path, 2, "--dim", 64, "--epochs", 1)
        out, err = more.communicate(timeout=200)
        assert more.returncode == 0, err
        assert json.loads(out)["nodes"] == 2

    def test_each_rank_has_a_stream_of_its_own_by_its_number(self, tmp_path):
        for rank in range(2):
            (tmp_path / f"part-{rank}.txt").write_text(support.topical_text(20_000 + 5_000 * rank, seed=rank))
        running = self.mpirun(tmp_path, 2, "--stream", "--vocab-max", 999, "--dim", 16, "--no-drift", text="part-{rank}.txt")
        out, err = running.communicate(timeout=support.TIMEOUT_S)
        assert running.returncode == 0, err
        parts = [len((tmp_path / f"part-{rank}.txt").read_text().split()) for rank in range(2)]
        assert json.loads(out)["tokens"] == sum(parts)

    def stopping(self, tmp_path, rank):
        """What comes of three ranks of which one is stopped and never continued."""
        running = self.mpirun(tmp_path, 3, "--dim", 64, "--epochs", 100, "--sync-words", 1000, "--checkpoint-every", 0.2,
                              "--dead-after", 5)
        support.wait_for(lambda: running.poll() is not None or (tmp_path / "model" / "latest").exists(), "a checkpoint")
        assert running.poll() is None, running.communicate()
        stopped = sorted(support.children_of(running.pid))[rank]
        os.kill(stopped, signal.SIGSTOP)
        out, err = running.communicate(timeout=support.TIMEOUT_S)
        support.wait_for(lambda: not support.runs(stopped), "the end of what is stopped")
        support.run("nearest", tmp_path / "model", "aaax", exit=0)
        return running.returncode, out, err

    def test_the_others_train_on_and_end_without_one_that_is_stopped(self, corpus, tmp_path):
        code, out, err = self.stopping(tmp_path, 2)
        assert code == 1  # of mpirun, which wants all ranks to end
        assert "left out" in err
        assert json.loads(out)["tokens"] > 0

    def test_where_the_first_rank_is_stopped_all_end_with_an_error(self, corpus, tmp_path):
        code, out, err = self.stopping(tmp_path, 0)
        assert code == 1 and out == ""
        assert [line for line in err.splitlines() if line.startswith("streamvec: ")], err


@support.needs("gRPC")
class TestBadOptions:
    @pytest.mark.parametrize("options, words", [(["--rank", "2"], "--rank is 2"), (["--servers", "2"], "at least one has to"),
                                                (["--stream"], "give --vocab-max"), (["--model", "glove"], "not glove"),
                                                (["--stream", "--vocab-max", "99", "--model", "rbsg", "--servers", "1"], "in a ring"),
                                                (["--stream", "--vocab-max", "99", "--sync", "ring"], "--sync ring"),
                                                (["--sync", "later"], "bsp|backup"),
                                                (["--sync", "ring", "--servers", "1"], "in a ring all nodes train"),
                                                (["--model", "rbsg", "--sync", "ssp"], "try --sync ring"),
                                                (["--model", "cbow", "--sync", "sandblaster"], "not cbow"),
                                                (["--optimizer", "adam", "--sync", "sandblaster"], "steps by L-BFGS")])
    def test_settings_that_cannot_be_are_named(self, options, words, corpus, tmp_path):
        done = subprocess.run([support.PROGRAM, "train", "corpus.txt", "--out", "model", "--nodes",
                               "127.0.0.1:1,127.0.0.1:2", *options], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2
        assert words in done.stderr

    def test_nodes_that_are_found_have_no_numbers_for_sources(self, tmp_path):
        done = support.run("train", "part-{rank}.txt", "--stream", "--vocab-max", 99, "--out", "model", "--etcd",
                           "http://127.0.0.1:1", "--address", "127.0.0.1:2", cwd=tmp_path, exit=2)
        assert "{rank}" in done.err and "--etcd" in done.err

    @pytest.mark.parametrize("options, words", [(["--servers", "2"], "at least one has to"), (["--model", "glove"], "not glove")])
    def test_they_are_named_before_others_are_looked_for(self, options, words, corpus, tmp_path):
        port, nobody = support.free_ports(2)
        done = subprocess.run([support.PROGRAM, "train", "corpus.txt", "--out", "model", "--etcd", f"http://127.0.0.1:{nobody}",
                               "--address", f"127.0.0.1:{port}", *options], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2
        assert words in done.stderr

    @pytest.mark.parametrize("source", ["-", "newsroom:"])
    @pytest.mark.parametrize("rank", ["0", "1"])
    def test_text_that_only_one_node_can_read_needs_a_bound_of_its_words(self, source, rank, tmp_path):
        done = subprocess.run([support.PROGRAM, "train", source, "--out", "model", "--nodes", "127.0.0.1:1,127.0.0.1:2",
                               "--rank", rank], cwd=tmp_path, capture_output=True, text=True, input="a b c\n" * 1000)
        assert done.returncode == 1 and "give --vocab-max" in done.stderr
        assert not (tmp_path / "model").exists()

    def test_an_address_that_others_reach_needs_a_secret(self, corpus, tmp_path):
        done = subprocess.run([support.PROGRAM, "train", "corpus.txt", "--out", "model", "--nodes",
                               "0.0.0.0:0,127.0.0.1:2"], cwd=tmp_path, capture_output=True, text=True,
                              env={k: v for k, v in os.environ.items() if k != "STREAMVEC_CLUSTER_TOKEN"})
        assert done.returncode == 1
        assert "token" in done.stderr.lower()
