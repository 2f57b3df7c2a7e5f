"""Ctrl-C, SIGTERM and a terminal that is gone save and leave with 0; what is closed at the start does no harm."""
import json
import os
import pty
import select
import signal
import subprocess
import time

import pytest
from stream_support import Redis, planted_text
from support import PROGRAM, TIMEOUT_S, free_ports, newest, run, start, topical_text, vocabulary, wait_for

# The first checkpoint tells that training has begun.
ENDLESS = ["--dim", "32", "--min-count", "1", "--checkpoint-every", "0.1", "--epochs", "1000000"]
PATIENCE_S = TIMEOUT_S


def await_training(model):
    wait_for((model / "latest").exists, "a checkpoint")


def words_saved(model):
    """How often each was counted, by the newest checkpoint; they come and go meanwhile."""
    try:
        return dict(vocabulary(model))
    except OSError:
        return {}


def progress_saved(model):
    try:
        return json.loads((newest(model) / "state.json").read_text())["state"]["progress"]
    except OSError:
        return {}


class TestSignals:
    @pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    @pytest.mark.parametrize("threads", [1, 2])
    def test_a_signal_saves_and_leaves_with_0(self, text, tmp_path, which, threads):
        process = start("train", text, "--out", tmp_path / "m", *ENDLESS, "--threads", threads, "--json")
        await_training(tmp_path / "m")
        process.send_signal(which)
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, stderr.decode()
        result = json.loads(stdout)
        assert result["stopped"] is True and result["tokens"] > 0
        run("nearest", tmp_path / "m", "aaax", exit=0)

    def test_a_stopped_run_whose_directory_has_grown_learns_the_new_words(self, tmp_path):
        (tmp_path / "texts").mkdir()
        (tmp_path / "texts/1").write_text(topical_text(20_000))
        process = start("train", tmp_path / "texts", "--out", tmp_path / "m", *ENDLESS)
        await_training(tmp_path / "m")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
        (tmp_path / "texts/2").write_text("brandnew words come late\n" * 100)
        process = start("train", tmp_path / "texts", "--out", tmp_path / "m", *ENDLESS, "--json")
        wait_for(lambda: words_saved(tmp_path / "m").get("brandnew") == 100, "the new words")
        process.send_signal(signal.SIGTERM)
        stdout, _ = process.communicate(timeout=PATIENCE_S)
        assert any("text has changed" in note for note in json.loads(stdout)["notes"])

    @pytest.mark.parametrize("options", [[], ["--shard", "rows"]])
    def test_a_leader_that_is_told_to_stop_saves_at_once_and_the_same_command_goes_on(self, text, tmp_path, options):
        ports = free_ports(2)
        command = ["train", text, "--out", tmp_path / "m", *ENDLESS, "--threads", 1, *options, "--nodes",
                   ",".join(f"127.0.0.1:{port}" for port in ports), "--rank"]
        trained = [0]
        for _ in range(2):
            nodes = [start(*command, rank, "--json") for rank in (0, 1)]
            wait_for(lambda: progress_saved(tmp_path / "m").get("tokens", 0) > trained[-1], "a checkpoint")
            nodes[0].send_signal(signal.SIGTERM)
            stdout, stderr = nodes[0].communicate(timeout=PATIENCE_S)
            assert nodes[0].returncode == 0, stderr.decode()
            assert json.loads(stdout)["stopped"] is True
            nodes[1].communicate(timeout=PATIENCE_S)
            assert nodes[1].returncode == 0
            assert progress_saved(tmp_path / "m")["finished"] is False
            trained.append(progress_saved(tmp_path / "m")["tokens"])
        assert 0 < trained[1] < trained[2]

    def test_under_nohup_a_hangup_does_not_stop_it(self, text, tmp_path):
        process = start("train", text, "--out", tmp_path / "m", *ENDLESS, "--json",
                        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        await_training(tmp_path / "m")
        process.send_signal(signal.SIGHUP)
        step = newest(tmp_path / "m").name
        wait_for(lambda: newest(tmp_path / "m").name != step, "another checkpoint")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0

    def test_the_same_signal_sent_twice_at_once_still_saves(self, text, tmp_path):
        process = start("train", text, "--out", tmp_path / "m", *ENDLESS)
        await_training(tmp_path / "m")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
        assert newest(tmp_path / "m").is_dir()

    def test_what_it_saves_is_acknowledged_to_the_broker(self, tmp_path):
        server = Redis()
        try:
            process = start("train", f"redis://127.0.0.1:{server.port}/news?group=g", "--out", tmp_path / "m", "--dim", "8",
                            "--min-count", "1", "--checkpoint-every", "3600")
            for entries in (40, 80):  # the second ones are asked for when the first are taken in
                for number in range(40):
                    server.add("news", planted_text("doc", number))
                wait_for(lambda: server.pending("news", "g") == entries, f"{entries} entries to be handed out")
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0
            saved = dict(vocabulary(tmp_path / "m"))["tells"]
            assert saved >= 40 and server.pending("news", "g") == 80 - saved
        finally:
            server.close()

    def test_a_silent_standard_input_does_not_hold_it_up(self, tmp_path):
        process = start("train", "-", "--out", tmp_path / "m", *ENDLESS[:-2], "--json", stdin=-1)
        process.stdin.write(topical_text(20_000).encode())
        process.stdin.flush()
        wait_for(lambda: len(words_saved(tmp_path / "m")) == 120, "all words")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_S) == 0, process.stderr.read().decode()
        assert len(vocabulary(tmp_path / "m")) == 120
        process.stdin.close()

    def test_progress_to_a_reader_that_left_does_not_stop_training(self, text, tmp_path):
        process = start("train", text, "--out", tmp_path / "m", *ENDLESS, "--json")
        process.stderr.close()
        await_training(tmp_path / "m")
        process.send_signal(signal.SIGTERM)
        assert json.loads(process.stdout.read())["stopped"] is True
        assert process.wait(timeout=PATIENCE_S) == 0


def run_with(redirection, *args):
    return subprocess.run(["sh", "-c", f'exec "$0" "$@" {redirection}', PROGRAM, *map(str, args)],
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S)


class TestClosedDescriptors:
    def test_a_closed_standard_input_reads_as_empty_and_leaves_no_model(self, tmp_path):
        done = run_with("<&-", "train", "-", "--out", tmp_path / "m", "--dim", 8)
        assert done.returncode == 1 and b"standard input is empty" in done.stderr
        assert not (tmp_path / "m/latest").exists()

    @pytest.mark.parametrize("number, redirection", [(0, "<&-"), (1, ">&-"), (2, "2>&-")])
    def test_no_file_of_the_program_gets_a_standard_descriptor(self, text, tmp_path, number, redirection):
        process = subprocess.Popen(["sh", "-c", f'exec "$0" "$@" {redirection}', PROGRAM, "train", str(text), "--out",
                                    str(tmp_path / "m"), *ENDLESS], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        await_training(tmp_path / "m")
        opened = os.readlink(f"/proc/{process.pid}/fd/{number}")
        process.send_signal(signal.SIGTERM)
        result = process.wait(timeout=PATIENCE_S)
        assert opened == "/dev/null" and result == (1 if number == 1 else 0), "what it says at its end is lost"

    def test_progress_to_a_closed_standard_error_goes_into_no_file(self, text, tmp_path):
        args = ["train", text, "--dim", 8, "--min-count", 1, "--epochs", 3, "--threads", 1]
        assert run_with("2>&-", *args, "--out", tmp_path / "closed").returncode == 0
        assert run_with("2>/dev/null", *args, "--out", tmp_path / "open").returncode == 0
        for name in ("closed", "open"):
            process, *rest = (tmp_path / name / ".lock").read_text().split()
            assert process.isdigit() and not rest, name


class TestTerminal:
    """The program with a terminal of its own, driven by keys."""

    def on_terminal(self, *args):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(PROGRAM, [PROGRAM, *map(str, args)])
        return pid, terminal

    def read_until(self, terminal, wanted):
        seen = b""
        end = time.monotonic() + PATIENCE_S
        while wanted not in seen:
            assert time.monotonic() < end, seen
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    seen += os.read(terminal, 4096)
                except OSError:
                    assert wanted in seen, seen
        return seen

    def drain(self, terminal):
        try:
            while os.read(terminal, 4096):
                pass
        except OSError:
            os.close(terminal)

    def test_the_line_is_live_and_ctrl_c_saves(self, text, tmp_path):
        pid, terminal = self.on_terminal("train", text, "--out", tmp_path / "m", *ENDLESS)
        seen = self.read_until(terminal, b"tokens/s")
        self.read_until(terminal, b"\r")
        assert b"%" in seen and b"\r" in seen
        os.write(terminal, b"\x03")
        self.read_until(terminal, b"dimensions")
        self.drain(terminal)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert newest(tmp_path / "m").is_dir()
