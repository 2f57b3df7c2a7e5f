import shutil
import subprocess
import urllib.request

import pytest

import support


@pytest.fixture
def text(tmp_path):
    """A file of 20,000 tokens in four topics."""
    path = tmp_path / "text.txt"
    path.write_text(support.topical_text(20_000))
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model that knows its topics, shared by the tests of a file. Read it only."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "text.txt").write_text(support.topical_text(60_000))
    support.run("train", folder / "text.txt", "--out", folder / "model", "--dim", 24, "--epochs", 5, "--threads", 1,
                "--sample", 0, "--lr", 0.05, "--negatives", 2, exit=0)  # with 10, no pair of four topics has positive SPPMI
    return folder / "model"


@pytest.fixture
def etcd(tmp_path):
    """An etcd of our own on loopback; its address."""
    if shutil.which("etcd") is None:
        pytest.skip("there is no etcd (etcd-server)")
    client, peer = (f"http://127.0.0.1:{port}" for port in support.free_ports(2))
    process = subprocess.Popen(["etcd", "--data-dir", tmp_path / "etcd", "--listen-client-urls", client,
                                "--advertise-client-urls", client, "--listen-peer-urls", peer,
                                "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def answers():
        assert process.poll() is None, "etcd has ended"
        try:
            with urllib.request.urlopen(client + "/health", timeout=5) as health:
                return b"true" in health.read()
        except OSError:
            return False

    support.wait_for(answers, "etcd")
    yield client
    process.kill()
    process.wait()


@pytest.fixture
def corpus(tmp_path):
    """corpus.txt, on which the nodes of a cluster train."""
    (tmp_path / "corpus.txt").write_text(support.topical_text(120_000))
    return tmp_path / "corpus.txt"
