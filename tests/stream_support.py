"""What the tests of streams share: brokers and web servers on loopback, documents with a word of their own, and counting
those words in a model directory."""
import ctypes
import http.server
import json
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest
from support import LACKS, MOCK_KAFKA, PROGRAM, TIMEOUT_S, free_ports, newest, start, wait_for

SHARING = ["--vocab-max", "5000", "--dim", "16", "--min-count", "1", "--threads", "1", "--sync-words", "1000", "--no-drift",
           "--evaluate-every", "0", "--checkpoint-every", "0.2", "--dead-after", "5"]
TELLS = "tells what the reader of this stream has to count exactly once and not more often"


def planted_text(name, number):
    """A document with a word of its own, and others that all have."""
    return f"{name}{number} {TELLS}"


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Server:
    """A program of another project that listens on a port of loopback; ended by close()."""

    def __init__(self, port, *command):
        if shutil.which(command[0]) is None:
            pytest.skip(f"{command[0]} is not installed")
        self.port = port
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)
        wait_for(self.accepts, command[0])

    def accepts(self):
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
            return True
        except OSError:
            return False

    def close(self):
        self.process.kill()
        self.process.wait()


class Redis(Server):
    def __init__(self):
        port = free_ports(1)[0]
        super().__init__(port, "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
        self.connection = socket.create_connection(("127.0.0.1", port)).makefile("rwb")

    def send(self, *parts):
        request = f"*{len(parts)}\r\n" + "".join(f"${len(part)}\r\n{part}\r\n" for part in parts)
        self.connection.write(request.encode())
        self.connection.flush()

    def add(self, key, text):
        self.send("XADD", key, "*", "text", text)
        assert self.connection.readline().startswith(b"$")
        self.connection.readline()

    def pending(self, key, group):
        """How many entries were handed out and not acknowledged; 0 as long as there is no such group."""
        self.send("XPENDING", key, group, "-", "+", "100000")
        head = self.connection.readline()
        if head.startswith(b"-NOGROUP"):
            return 0
        assert head.startswith(b"*"), head
        for _ in range(int(head[1:]) * 7):  # of an entry its length; id and consumer, each with its length; two numbers
            self.connection.readline()
        return int(head[1:])


class Nats(Server):
    """nats-server with JetStream, and as much of its protocol as publishing needs."""

    def __init__(self, folder):
        port = free_ports(1)[0]
        super().__init__(port, "nats-server", "-a", "127.0.0.1", "-p", port, "-js", "-sd", folder)
        self.connection = socket.create_connection(("127.0.0.1", port)).makefile("rwb")
        assert self.connection.readline().startswith(b"INFO")
        self.send('CONNECT {"verbose":false,"pedantic":false}\r\nSUB answers 1\r\n')

    def send(self, text):
        self.connection.write(text.encode())
        self.connection.flush()

    def request(self, subject, payload):
        self.send(f"PUB {subject} answers {len(payload.encode())}\r\n{payload}\r\n")
        while True:
            line = self.connection.readline()
            assert line, "nats-server has hung up"
            if line == b"PING\r\n":
                self.send("PONG\r\n")
            elif line.startswith(b"MSG"):
                answer = json.loads(self.connection.read(int(line.split()[-1]) + 2))
                assert "error" not in answer, answer
                return answer

    def make_stream(self, name, retention):
        self.request(f"$JS.API.STREAM.CREATE.{name}",
                     json.dumps({"name": name, "subjects": [f"{name}.>"], "retention": retention, "storage": "file"}))

    def add(self, stream, text):
        self.request(f"{stream}.text", text)


class Kafka:
    """librdkafka's mock of a cluster (mock_kafka.cc), with the topic `news`; documents go to its partitions in turn."""

    def __init__(self, partitions):
        if "Kafka" in LACKS:
            pytest.skip("this build has no Kafka")
        self.partitions, self.added = partitions, 0
        self.process = subprocess.Popen([MOCK_KAFKA, "news", str(partitions)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, preexec_fn=die_with_parent)
        self.authority = self.process.stdout.readline().strip()
        assert self.authority, "mock_kafka has ended"

    def add(self, text):
        """When this returns, readers can have it."""
        self.process.stdin.write(f"{self.added % self.partitions}\t{text}\n\n")
        self.process.stdin.flush()
        self.added += 1
        assert self.process.stdout.readline() == f"{self.added}\n"

    def close(self):
        """It ends by itself when nobody tells it anything any more."""
        self.process.stdin.close()
        try:
            assert self.process.wait(timeout=TIMEOUT_S) == 0
        finally:
            self.process.kill()
            self.process.stdout.close()


class Site(http.server.ThreadingHTTPServer):
    """A web site with a feed at /feed.xml; add() publishes a page. close() ends it."""
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), SiteHandler)
        self.pages = []
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def authority(self):
        return f"127.0.0.1:{self.server_address[1]}"

    def add(self, text):
        self.pages.append(text)

    def handle_error(self, request, client_address):
        pass  # readers are killed in these tests

    def close(self):
        self.shutdown()
        self.server_close()


class SiteHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, status, kind="text/plain", body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": len(body), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/feed.xml":
            return self.feed()
        if not self.path.startswith("/page/"):
            return self.answer(404)
        self.answer(200, "text/html", page_of(self.server.pages[int(self.path.rsplit("/", 1)[1])]).encode())

    def feed(self):
        count = len(self.server.pages)
        tag = f'"{count}"'
        if self.headers.get("If-None-Match") == tag:
            return self.answer(304, ETag=tag)
        items = "".join(f"<item><title>page {n}</title><link>/page/{n}</link></item>" for n in reversed(range(count)))
        feed = f'<?xml version="1.0"?><rss version="2.0"><channel><title>site</title>{items}</channel></rss>'
        self.answer(200, "application/rss+xml", feed.encode(), ETag=tag)


def page_of(text):
    return (f"<html><head><title>A page</title></head><body><nav><a href='/'>Home</a> <a href='/all'>All</a></nav>"
            f"<article><h1>A page</h1><p>{text}, and it is long enough to be taken for the article of the page, for it "
            f"has a few more words than its neighbours.</p></article></body></html>")


class Producer:
    """Publishes documents on a thread of its own, `rate` a second, until stop(); says then how many there are."""

    def __init__(self, name, rate, add):
        self.name, self.rate, self.add = name, rate, add
        self.count = 0
        self.error = None
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        begin = time.monotonic()
        try:
            while not self.ending.wait(max(0.0, begin + self.count / self.rate - time.monotonic())):
                self.add(planted_text(self.name, self.count))
                self.count += 1
        except Exception as error:
            self.error = error

    def stop(self):
        self.ending.set()
        self.thread.join()
        assert self.error is None, self.error
        return self.count


def checkpoint_file(model, name):
    """The text of a file of the newest checkpoint, "" when there is none. Checkpoints come and go meanwhile."""
    for _ in range(100):
        try:
            return (newest(model) / name).read_text()
        except OSError:
            if not (model / "latest").exists():
                return ""
    raise AssertionError(f"{model} has no {name}")


def counts(model):
    """How often each word was counted, by the newest checkpoint."""
    rows = [line.split("\t") for line in checkpoint_file(model, "vocab.tsv").splitlines()[1:]]
    return {row[0]: float(row[1]) for row in rows}


def planted_words(model, name):
    return sum(word.startswith(name) and word[len(name):].isdigit() for word in counts(model))


def documents_taken(model):
    text = checkpoint_file(model, "cursors.json")
    return json.loads(text)["totals"]["documents"] if text else 0


def assert_each_counted_once(model, name, count):
    """Lost 0, counted twice 0."""
    found = counts(model)
    lost = [n for n in range(count) if f"{name}{n}" not in found]
    twice = {n: found[f"{name}{n}"] for n in range(count) if found.get(f"{name}{n}", 1) != 1}
    assert not lost and not twice, f"of {count}: {len(lost)} lost {lost[:9]}, {len(twice)} counted twice {twice}"
    assert found["tells"] == count


class Training:
    """`streamvec train` on sources that never end; what it writes on standard error is kept."""

    def __init__(self, folder, args):
        self.log = open(folder / "stderr", "ab")
        self.process = start("train", *args, stdout=subprocess.DEVNULL, stderr=self.log)
        self.folder = folder

    def said(self):
        return (self.folder / "stderr").read_text()[-2000:]

    def assert_running(self):
        assert self.process.poll() is None, f"it left with {self.process.returncode}: {self.said()}"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def stop(self):
        """Ends it as Ctrl-C would."""
        self.process.send_signal(signal.SIGTERM)
        try:
            assert self.process.wait(timeout=TIMEOUT_S) == 0, self.said()
        finally:
            self.kill()


class SharingNodes:
    """`streamvec train` on the same shared source, several times; how many documents there are, which add() publishes."""

    def __init__(self, tmp_path, source, add_text):
        self.tmp_path, self.source, self.add_text, self.added = tmp_path, source, add_text, 0
        self.processes = []

    @classmethod
    def of(cls, *args):
        """For fixtures: none is left behind."""
        nodes = cls(*args)
        yield nodes
        for process in nodes.processes:
            process.kill()
            process.communicate()

    def node(self, *options, stderr=subprocess.PIPE):
        self.processes.append(subprocess.Popen(
            [PROGRAM, "train", self.source, "--out", "model", "--json", *SHARING, *options], cwd=self.tmp_path,
            stdout=subprocess.PIPE, stderr=stderr, text=True))

    def start(self, count):
        addresses = ",".join(f"127.0.0.1:{port}" for port in free_ports(count))
        self.processes = []
        for rank in range(count):
            self.node(*(["--nodes", addresses, "--rank", str(rank)] if count > 1 else []))

    def add(self, count):
        for _ in range(count):
            self.add_text(planted_text("doc", self.added))
            self.added += 1

    def assert_all_read_once(self):
        """And stand behind it: a checkpoint later than the first that has it all."""
        model = self.tmp_path / "model"
        ended = lambda: any(process.poll() not in (None, -signal.SIGKILL) for process in self.processes)
        wait_for(lambda: counts(model).get("tells", 0) >= self.added or ended(), "all documents")
        counted = (model / "latest").read_text()
        wait_for(lambda: (model / "latest").read_text() != counted or ended(), "the next checkpoint")
        assert_each_counted_once(model, "doc", self.added)

    def assert_other_numbers_go_on(self, documents):
        """So many are published twice for each number of nodes, which is stopped with the second of them half read."""
        for count in (2, 3, 1, 2):
            self.add(documents)
            self.start(count)
            self.assert_all_read_once()
            self.add(documents)
            self.stop()
            found = counts(self.tmp_path / "model")
            assert all(found.get(f"doc{n}", 1) == 1 for n in range(self.added)), found
        self.start(1)
        self.assert_all_read_once()
        self.stop()

    def kill(self, process):
        process.kill()
        process.communicate()
        self.processes.remove(process)

    def stop(self, leader=None):
        """What each has said, the first first."""
        (leader or self.processes[0]).send_signal(signal.SIGINT)
        said = [process.communicate(timeout=TIMEOUT_S) for process in self.processes]
        assert [process.returncode for process in self.processes] == [0] * len(said), said
        return said

    def documents(self):
        """Of each node, by the newest checkpoint."""
        cursors = json.loads(checkpoint_file(self.tmp_path / "model", "cursors.json"))
        return [place["totals"]["documents"] for place in [cursors, *cursors.get("nodes", {}).values()]]
