"""The demo finds what was planted."""
import json
import signal

import pytest
from serve_support import Events, serving
from support import SANITIZED, run, wait_for


class TestDemo:
    @pytest.fixture(scope="class")
    def over(self):
        """A demo that has come to its end, and is still answering."""
        with serving("--seconds", 60 if SANITIZED else 6, "--keep", "--json", command="demo") as running:
            running.events = Events(running, "progress", "end")
            running.events.await_one("end")
            yield running
            running.events.close()

    def test_it_finds_the_planted_truth_and_says_so(self, over):
        wait_for(lambda: any(line.startswith("{") for line in over.stdout), "".join(over.stderr))
        result = json.loads(next(line for line in over.stdout if line.startswith("{")))
        assert result["found"] is True
        assert result["analogies"]["right"] >= 0.8 * result["analogies"]["asked"]
        assert result["changes"]["right"] == result["changes"]["asked"] == 3
        assert result["robots"]["right"] == 1

    def test_it_shows_the_end_of_the_run_when_it_is_over(self, over):
        assert over.events.await_one("end")["why"] != "stopped"
        total = over.get("/api/progress")["progress"][-1]
        assert total["fraction"] == over.metric("streamvec_progress_ratio") == 1
        assert total["sources"] and all(source["documents_per_s"] == 0 for source in total["sources"])
        assert total["documents"] == max(progress["documents"] for progress in over.events.of("progress"))

    def test_it_says_so_when_it_is_stopped_and_leaves_no_files_behind(self, tmp_path):
        with serving("--seconds", 600, command="demo", env={"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"}) as running:
            events = Events(running, "progress", "end")
            events.await_one("progress")
            assert list(tmp_path.iterdir()) != []
            running.process.send_signal(signal.SIGINT)
            assert events.await_one("end")["why"] == "stopped"
            assert running.process.wait() == 0
            assert not any("saved" in line for line in running.stderr), "it keeps nothing"
            assert list(tmp_path.iterdir()) == []

    def test_misuse_is_told_before_anything_else(self):
        done = run("demo", "--keep", exit=2)
        assert done.out == "" and "--keep needs --listen" in done.err
