"""The repository keeps its word: documented commands run, folders keep their order, no leftovers."""
import os
import pathlib
import re
import subprocess

import pytest
import support

ROOT = support.ROOT
PREFIX = "build/release/streamvec"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def shell_blocks(page):
    """The ```sh blocks of a page that call the built program, without prompts and with continued lines joined."""
    for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        lines = block.replace("\\\n", " ").splitlines()
        if any(line.startswith(PREFIX) for line in lines):
            yield "\n".join(line for line in lines if not line.startswith(("make ", "git ", "cd ", "sudo ")))


class TestReadme:
    @pytest.mark.parametrize("page", [page for page in PAGES if page.exists()], ids=lambda page: page.name)
    def test_its_commands_run(self, page, tmp_path):
        """The blocks of a page run in order in one folder, as a reader would type them. It holds corpus.txt, new.txt,
        similarity.tsv and analogies.txt; lines that begin with make, git, cd or sudo are left out."""
        (tmp_path / "corpus.txt").write_text(support.topical_text(30_000) + "king queen man woman\n" * 200)
        (tmp_path / "new.txt").write_text(support.topical_text(5_000, seed=2))
        (tmp_path / "similarity.tsv").write_text("king\tqueen\t9\nking\taaax\t1\nman\twoman\t8\n")
        (tmp_path / "analogies.txt").write_text(": family\nking queen man woman\n")
        (tmp_path / "build/release").mkdir(parents=True)
        (tmp_path / PREFIX).symlink_to(pathlib.Path(support.PROGRAM).resolve())
        for block in shell_blocks(page):
            if "gRPC" in support.LACKS and f"{PREFIX} launch" in block:
                pytest.skip("this build has no gRPC")
            done = subprocess.run(["bash", "-eu", "-o", "pipefail", "-c", block], cwd=tmp_path, capture_output=True,
                                  text=True, timeout=300)
            assert done.returncode == 0, f"{page.name}:\n{block}\n{done.stdout}\n{done.stderr}"

    @pytest.mark.parametrize("page", [page for page in PAGES if page.exists()], ids=lambda page: page.name)
    def test_its_links_lead_somewhere(self, page):
        for target in re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"

    def test_every_flag_it_names_exists(self):
        commands = ["demo", "train", "eval", "nearest", "analogy", "vector", "export", "import", "drift", "source", "launch",
                    "reproduce", "serve", "simulate"]
        known = "\n".join(support.run("help", command, exit=0).out for command in commands)
        for page in PAGES:
            if not page.exists():
                continue
            for line in page.read_text().splitlines():
                if "streamvec " in line and line.lstrip("$ ").startswith((PREFIX, "streamvec ")):
                    for flag in re.findall(r"(?<=\s)--[a-z][a-z-]+", line):
                        assert f"  {flag}" in known or flag == "--help", f"{page.name}: {line}"


class TestTree:
    def test_folders_include_only_folders_above_them(self):
        done = subprocess.run([ROOT / "tools/folder_order"], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout

    def test_set_up_has_nothing_left_to_do_and_says_nothing(self):
        done = subprocess.run([ROOT / "tools/setup"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        # What the dashboard needs may not be to be had (Ubuntu has no chromium); it says so.
        assert (done.returncode, done.stdout) == (0, "") and (done.stderr == "" or "left out" in done.stderr)

    def test_scripts_are_executable_and_parse(self):
        for script in [*sorted((ROOT / "tools").iterdir()), ROOT / ".ci/run"]:
            first = script.read_text().splitlines()[0]
            if not first.startswith("#!"):
                continue
            assert os.access(script, os.X_OK), script
            if first.endswith("sh"):
                subprocess.run(["sh", "-n", script], check=True)

    def test_every_package_has_its_reason(self):
        for line in (ROOT / "tools/packages").read_text().splitlines():
            if line and not line.startswith("#"):
                assert "#" in line, line
