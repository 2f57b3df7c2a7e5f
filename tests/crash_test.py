"""Whatever happens while a model is saved, the newest complete one loads."""
import ctypes
import os
import random
import signal
import subprocess
import time

import pytest
from support import QUICK, SANITIZED, assert_one_line, newest, run, start, topical_text, train, wait_for, wide_text

KILLS = 25 if SANITIZED else 200


def is_saving(model, since_ns):
    """Whether a checkpoint is being written that was begun after `since_ns`. They come and go meanwhile."""
    for path in model.glob("*.partial"):
        try:
            if path.stat().st_mtime_ns > since_ns:
                return True
        except FileNotFoundError:
            pass
    return False


def stop_while_saving(process, model, since_ns):
    """Stops the process somewhere in a save, not before and not after it."""
    end = time.monotonic() + 60
    while True:
        assert time.monotonic() < end and process.poll() is None, "no save was met"
        if not is_saving(model, since_ns):
            time.sleep(0.0002)
            continue
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        if is_saving(model, since_ns):
            return
        process.send_signal(signal.SIGCONT)


class TestKill:
    def test_the_newest_complete_checkpoint_loads_after_every_kill(self, tmp_path):
        text, model = tmp_path / "text.txt", tmp_path / "m"
        text.write_text(wide_text(20_000, 2_000))
        args = ["train", text, "--out", model, "--dim", 64, "--min-count", 1, "--threads", 1, "--epochs", 1_000_000,
                "--checkpoint-every", "0.001"]
        draw = random.Random(5)
        loaded, step = 0, -1
        for kill in range(KILLS):
            since_ns = time.time_ns()
            process = start(*args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if kill == 0:
                wait_for((model / "latest").exists, "a first checkpoint")
            time.sleep((2.0 if SANITIZED else 0.06) + 0.1 * draw.random())
            if kill % 4 == 3:  # the others at any moment
                stop_while_saving(process, model, since_ns)
            process.kill()
            process.wait()
            if not (model / "latest").exists():
                assert loaded == 0, "a model that was there has gone"
                continue
            vector = run("vector", model, "w1", exit=0).out
            assert len(vector.split()) == 65
            assert int(newest(model).name) >= step, "training went back"
            step = int(newest(model).name)
            loaded += 1
        assert loaded >= KILLS * 9 // 10 and step > 0

    def test_what_kills_left_behind_does_not_pile_up(self, tmp_path):
        text, model = tmp_path / "text.txt", tmp_path / "m"
        text.write_text(wide_text(20_000, 2_000))
        args = ["train", text, "--out", model, "--dim", 64, "--min-count", 1, "--threads", 1]
        for kill in range(10):
            process = start(*args, "--epochs", 1_000_000, "--checkpoint-every", "0.001", stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
            if kill == 0:
                wait_for((model / "latest").exists, "a first checkpoint")
            time.sleep(2.0 if SANITIZED else 0.2)
            process.kill()
            process.wait()
        size = sum(path.stat().st_size for path in model.rglob("*") if path.is_file())
        one = sum(path.stat().st_size for path in newest(model).iterdir())
        # Three whole ones, one being written and one being removed, and a few bytes beside them.
        assert size <= 5.5 * one


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 4 MB of its own, in a mount namespace that ends with this process."""
    newns, newuser = 0x00020000, 0x10000000
    root = os.geteuid() == 0
    uid, gid = os.getuid(), os.getgid()
    if ctypes.CDLL(None).unshare(newns if root else newns | newuser) != 0:
        pytest.skip("no right to mount a tmpfs here")
    if not root:
        open("/proc/self/setgroups", "w").write("deny")
        open("/proc/self/uid_map", "w").write(f"0 {uid} 1")
        open("/proc/self/gid_map", "w").write(f"0 {gid} 1")
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def fill(folder, leave_bytes):
    """Takes all but about `leave_bytes` of the disk."""
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    (folder / "filler").write_bytes(b"x" * max(0, free - leave_bytes))


class TestFullDisk:
    @pytest.mark.parametrize("leave_bytes", [0, 4096, 12288])
    def test_it_fails_and_the_checkpoint_before_still_loads(self, small_disk, text, leave_bytes):
        model = small_disk / "m"
        train(text, "--out", model)
        before = run("vector", model, "aaax", exit=0).out
        fill(small_disk, leave_bytes)
        done = run("train", text, "--out", model, *QUICK, "--epochs", 2, "--seed", 2, exit=1)
        assert_one_line(done.err)
        assert str(model) in done.err and "space" in done.err.lower()
        assert run("vector", model, "aaax", exit=0).out == before

    def test_once_there_is_room_again_training_goes_on(self, small_disk, text):
        model = small_disk / "m"
        train(text, "--out", model)
        fill(small_disk, 4096)
        run("train", text, "--out", model, *QUICK, "--epochs", 2, exit=1)
        (small_disk / "filler").unlink()
        run("train", text, "--out", model, *QUICK, "--epochs", 2, exit=0)

    def test_an_export_that_does_not_fit_fails_and_leaves_nothing(self, small_disk, trained):
        fill(small_disk, 4096)
        done = run("export", trained, "--format", "word2vec", small_disk / "v.txt", exit=1)
        assert str(small_disk / "v.txt") in done.err
        assert not (small_disk / "v.txt").exists()


class TestDamage:
    @pytest.fixture
    def model(self, text, tmp_path):
        """A directory with two checkpoints."""
        train(text, "--out", tmp_path / "m")
        (tmp_path / "more.txt").write_text(topical_text(5_000, seed=3))
        train(tmp_path / "more.txt", "--out", tmp_path / "m")
        return tmp_path / "m"

    @pytest.mark.parametrize("name", ["model.safetensors", "vocab.tsv", "state.json"])
    def test_a_file_cut_short_is_named_and_the_one_before_answers(self, model, name):
        steps = [path for path in model.iterdir() if path.is_dir() and not path.is_symlink() and path.name.isdigit()]
        if len(steps) < 2:
            pytest.fail("the checkpoint before the newest was not kept")
        damaged = newest(model) / name
        damaged.write_bytes(damaged.read_bytes()[:-7])
        done = run("vector", model, "aaax", exit=0)
        assert name in done.err

    def test_flipped_bits_are_found(self, model):
        damaged = newest(model) / "model.safetensors"
        data = bytearray(damaged.read_bytes())
        data[len(data) // 2] ^= 0x40
        damaged.write_bytes(data)
        assert "model.safetensors" in run("vector", model, "aaax", exit=0).err

    def test_a_directory_without_a_model_is_named(self, tmp_path):
        (tmp_path / "d").mkdir()
        for args in (["nearest", tmp_path / "d", "a"], ["eval", tmp_path / "d"], ["vector", tmp_path / "none", "a"]):
            done = run(*args, exit=1)
            assert_one_line(done.err)
            assert str(args[1]) in done.err
