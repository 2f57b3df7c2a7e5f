"""Hosts of their own on this machine: network namespaces that a bridge joins. Only root may make them."""
import contextlib
import dataclasses
import subprocess

NETWORK = "10.77.31"  # inside; two bridges do not hear each other


@dataclasses.dataclass
class Host:
    name: str    # of its namespace
    outer: str   # the end of its link at the bridge
    address: str

    @property
    def before(self):
        """The words before a command that is to run there."""
        return ["ip", "netns", "exec", self.name]

    def cut(self):
        """From now on what it sends and what others send it is lost without a word."""
        configure("ip", "link", "set", self.outer, "down")

    def mend(self):
        configure("ip", "link", "set", self.outer, "up")


def configure(*command):
    """Runs it; RuntimeError with what it complains of."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


def slowed(device, rate, *inside):
    configure(*inside, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", rate, "burst", "512kb", "latency", "50ms")


def take_down(name, count):
    for i in range(count):
        subprocess.run(["ip", "link", "del", f"{name}o{i}"], capture_output=True)
        subprocess.run(["ip", "netns", "del", f"{name}{i}"], capture_output=True)
    subprocess.run(["ip", "link", "del", name], capture_output=True)


@contextlib.contextmanager
def hosts(name, count, rate=None):
    """So many of them, of which tbf holds both ends of every link to `rate`. `name`: of the bridge, 10 letters at most."""
    take_down(name, count)  # a run that was killed has left it
    try:
        configure("ip", "link", "add", name, "type", "bridge")
        configure("ip", "link", "set", name, "up")
        made = [Host(f"{name}{i}", f"{name}o{i}", f"{NETWORK}.{i + 1}") for i in range(count)]
        for i, host in enumerate(made):
            inner = f"{name}i{i}"
            configure("ip", "netns", "add", host.name)
            configure("ip", "link", "add", host.outer, "type", "veth", "peer", "name", inner, "netns", host.name)
            configure("ip", "link", "set", host.outer, "master", name, "up")
            configure("ip", "-n", host.name, "addr", "add", f"{host.address}/24", "dev", inner)
            for device in (inner, "lo"):
                configure("ip", "-n", host.name, "link", "set", device, "up")
            if rate is not None:
                slowed(host.outer, rate)
                slowed(inner, rate, *host.before)
        yield made
    finally:
        take_down(name, count)
