"""The same train, started by srun: a Slurm of our own on loopback, with a munge of its own."""
import contextlib
import getpass
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile

import pytest
import support

LACKING = [program for program in ["munged", "slurmctld", "slurmd", "srun", "sinfo", "scontrol"]
           if shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin") is None]

# One node that claims more cores than there may be; no cgroups, no accounting, nothing kept for later.
SETTINGS = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
ReturnToService=2
NodeName=here NodeHostname={host} NodeAddr=127.0.0.1 CPUs=8
PartitionName=all Nodes=here Default=YES MaxTime=INFINITE State=UP
"""


@contextlib.contextmanager
def running(folder, *command, env=None):
    """A server in the foreground, until the end; what it says is in the folder."""
    with open(folder / f"{command[0]}.log", "w") as log:
        path = shutil.which(command[0], path=os.environ["PATH"] + ":/usr/sbin")
        process = subprocess.Popen([path, *command[1:]], env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def slurm():
    """The environment in which srun finds a Slurm of our own."""
    if LACKING:
        pytest.skip(f"there is no {', '.join(LACKING)} (munge, slurmctld, slurmd, slurm-client)")
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm")))
        folder.chmod(0o755)  # munge wants its socket where everybody can reach it
        for name in ["state", "spool"]:
            (folder / name).mkdir()
        (folder / "key").write_bytes(os.urandom(128))
        (folder / "key").chmod(0o400)
        (folder / "slurm.conf").write_text(SETTINGS.format(folder=folder, host=socket.gethostname().split(".")[0],
                                                           user=getpass.getuser(), ports=support.free_ports(2)))
        env = {**{name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "PMI"))},
               "SLURM_CONF": str(folder / "slurm.conf"), "ASAN_OPTIONS": "detect_leaks=0"}  # Open MPI leaves memory behind
        servers = [stack.enter_context(running(folder, "munged", "--foreground", f"--key-file={folder}/key",
                                               f"--socket={folder}/munge.socket", f"--pid-file={folder}/munged.pid",
                                               f"--seed-file={folder}/seed", f"--log-file={folder}/munge.log"))]
        log = lambda: "\n".join(path.read_text() for path in folder.glob("*.log"))

        def there(condition):
            assert all(server.poll() is None for server in servers), log()
            return condition()

        support.wait_for(lambda: there((folder / "munge.socket").exists), "munge")
        servers.append(stack.enter_context(running(folder, "slurmctld", "-D", env=env)))
        servers.append(stack.enter_context(running(folder, "slurmd", "-D", "-N", "here", env=env)))
        state = lambda: subprocess.run(["sinfo", "-h", "-o", "%T"], env=env, capture_output=True, text=True).stdout
        support.wait_for(lambda: there(lambda: state().strip() == "idle"), "a node that takes jobs")
        yield env


@support.needs("MPI")
class TestSlurm:
    def srun(self, slurm, tmp_path, ranks, *options):
        command = ["srun", "--mpi=pmix", "-n", ranks, support.PROGRAM, "train", "corpus.txt", "--out", "model", "--threads", 1,
                   "--json", *options]
        return subprocess.Popen([str(word) for word in command], cwd=tmp_path, env=slurm, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def tasks(self, slurm):
        """What runs, first rank first: its process and its job."""
        listed = subprocess.run(["scontrol", "listpids"], env=slurm, capture_output=True, text=True).stdout.splitlines()
        tasks = [line.split() for line in listed[1:]]
        return [(int(task[0]), task[1]) for task in sorted(tasks, key=lambda task: task[4]) if task[4].isdigit()]

    def test_ranks_train_one_model_and_the_first_speaks_for_all(self, slurm, corpus, tmp_path):
        running = self.srun(slurm, tmp_path, 3, "--dim", 16, "--epochs", 2, "--sync-words", 2000)
        out, err = running.communicate(timeout=support.TIMEOUT_S)
        assert running.returncode == 0, err
        report = json.loads(out)
        assert report["nodes"] == 3 and report["bytes_sent"] > 0
        assert report["tokens"] == 2 * len(corpus.read_text().split())
        support.run("nearest", tmp_path / "model", "aaax", exit=0)

    def progress(self, tmp_path):
        """What the newest checkpoint says of the run; nothing before the first."""
        with contextlib.suppress(FileNotFoundError):  # or between two of them
            return json.loads((support.newest(tmp_path / "model") / "state.json").read_text())["state"]["progress"]
        return {"tokens": 0}

    def test_the_others_train_on_and_end_without_one_that_is_stopped(self, slurm, corpus, tmp_path):
        running = self.srun(slurm, tmp_path, 3, "--dim", 64, "--epochs", 100, "--sync-words", 1000, "--checkpoint-every", 0.2,
                            "--dead-after", 5)
        support.wait_for(lambda: running.poll() is not None or self.progress(tmp_path)["tokens"] > 0, "a checkpoint")
        assert running.poll() is None, running.communicate()
        stopped = self.tasks(slurm)[2][0]
        os.kill(stopped, signal.SIGSTOP)
        out, err = running.communicate(timeout=support.TIMEOUT_S)
        assert "left out" in err
        assert json.loads(out)["tokens"] > 0
        support.wait_for(lambda: not support.runs(stopped), "the end of what is stopped")

    def test_a_killed_rank_ends_all_and_the_same_command_goes_on_from_the_checkpoint(self, slurm, corpus, tmp_path):
        options = ["--dim", 64, "--epochs", 1_000_000, "--sync-words", 1000, "--checkpoint-every", 0.2]
        running = self.srun(slurm, tmp_path, 3, *options)
        support.wait_for(lambda: running.poll() is not None or self.progress(tmp_path)["tokens"] > 5e5, "checkpoints",
                         patience_s=240)
        assert running.poll() is None, running.communicate()
        os.kill(self.tasks(slurm)[2][0], signal.SIGKILL)
        out, err = running.communicate(timeout=support.TIMEOUT_S)
        assert running.returncode != 0 and out == "", err
        support.run("nearest", tmp_path / "model", "aaax", exit=0)
        left = self.progress(tmp_path)
        more = self.srun(slurm, tmp_path, 3, *options)
        support.wait_for(lambda: more.poll() is not None or self.progress(tmp_path)["tokens"] not in (0, left["tokens"]),
                         "another")
        assert more.poll() is None, more.communicate()
        subprocess.run(["scancel", "--signal=TERM", self.tasks(slurm)[0][1]], env=slurm, check=True)
        out, err = more.communicate(timeout=support.TIMEOUT_S)
        assert more.returncode == 0, err
        report = json.loads(out)
        assert report["nodes"] == 3 and report["stopped"]
        assert report["tokens"] > left["tokens"]  # of both runs together; begun anew it would be far behind by now
