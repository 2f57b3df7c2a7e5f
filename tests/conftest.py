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
