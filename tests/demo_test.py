"""The demo finds what was planted."""
import json

from support import SANITIZED, run


class TestDemo:
    def test_it_finds_the_planted_truth_and_says_so(self):
        result = json.loads(run("demo", "--seconds", 60 if SANITIZED else 6, "--json", exit=0).out)
        assert result["found"] is True
        assert result["analogies"]["right"] >= 0.8 * result["analogies"]["asked"]
        assert result["changes"]["right"] == result["changes"]["asked"] == 3
        assert result["robots"]["right"] == 1

    def test_it_leaves_no_files_behind(self, tmp_path):
        run("demo", "--seconds", 1, "--json", cwd=tmp_path, env={"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"})
        assert list(tmp_path.iterdir()) == []
