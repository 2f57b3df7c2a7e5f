"""Ten sources at once, half of them failing in every way there is: training goes on, the healthy ones lose nothing, and
the others come back."""
import asyncio
import base64
import gzip
import hashlib
import json
import random
import struct
import threading
import time

import pytest
from stream_support import TELLS, Training, counts, page_of, wait_for
from support import SANITIZED

FAULTS = ["429", "503", "reset", "stall", "garbage", "cut gzip"]
RATE = 40  # documents a second of a live source
QUICK = ["--min-count", "1", "--dim", "8", "--threads", "1", "--checkpoint-every", "0.5", "--evaluate-every", "0",
         "--snapshot-every", "0", "--no-drift", "--fetch-delay", "0.01", "--poll-every", "0.2"]


class Host:
    """A server on loopback with a stream of its own; its documents have the words NAME0, NAME1, ... While `failing`,
    every request, and every live connection, meets a fault drawn at random."""

    def __init__(self, name, kind, loop, seed):
        self.name, self.kind = name, kind
        self.draw = random.Random(seed)
        self.failing = False
        self.faults_met = 0
        self.begin = time.monotonic()
        self.end = None
        self.server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self.serve, "127.0.0.1", 0), loop).result()
        self.authority = "127.0.0.1:%d" % self.server.sockets[0].getsockname()[1]

    @property
    def source(self):
        return {"sse": f"sse+http://{self.authority}/events?private=1&idle=2&retry=100",
                "websocket": f"ws://{self.authority}/live?private=1&idle=2&retry=100&format=json&text=/text&cursor=/n"
                             f"&cursor-param=from",
                "rss": f"http://{self.authority}/feed.xml",
                "json feed": f"http://{self.authority}/feed.json"}[self.kind]

    def published(self):
        return int(RATE * ((self.end or time.monotonic()) - self.begin))

    def text(self, number):
        return f"{self.name}{number} {TELLS}"

    async def serve(self, reader, writer):
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                if not await self.answer(request.decode("latin-1"), writer):
                    break
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    async def answer(self, request, writer):
        """One answer; False when the connection is to be closed."""
        path = request.split()[1]
        if self.failing:
            return await self.fail(writer)
        if path.startswith("/events"):
            return await self.events(request, writer)
        if path.startswith("/live"):
            return await self.messages(request, path, writer)
        return await self.page(path, request, writer)

    async def send(self, writer, status, kind="text/plain", body=b"", headers=""):
        writer.write(f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode()
                     + body)
        await writer.drain()
        return True

    async def fail(self, writer):
        self.faults_met += 1
        fault = self.draw.choice(FAULTS)
        if fault == "429":
            return await self.send(writer, "429 Too Many Requests", headers="Retry-After: 1\r\n")
        if fault == "503":
            return await self.send(writer, "503 Service Unavailable")
        if fault == "stall":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Le")
            await asyncio.sleep(1.5)
        elif fault == "garbage":
            writer.write(bytes(self.draw.randrange(256) for _ in range(3_000)))
        elif fault == "cut gzip":
            whole = gzip.compress(page_of("never " * 500).encode())
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n"
                         f"Content-Length: {len(whole)}\r\n\r\n".encode() + whole[:len(whole) // 2])
            await writer.drain()
        return False  # closed as it is: a reset

    async def events(self, request, writer):
        last = [line.split(":")[1] for line in request.splitlines() if line.lower().startswith("last-event-id:")]
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        await self.follow(int(last[0]) + 1 if last else 0, writer,
                          lambda n: f"id: {n}\ndata: {self.text(n)}\n\n".encode())

    async def messages(self, request, path, writer):
        key = [line.split(":")[1].strip() for line in request.splitlines() if line.lower().startswith("sec-websocket-key:")]
        accept = base64.b64encode(hashlib.sha1((key[0] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                     b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        begin = int(path.split("from=")[1].split("&")[0]) + 1 if "from=" in path else 0

        def frame(n):
            data = json.dumps({"n": n, "text": self.text(n)}).encode()
            return struct.pack(*((">BB", 0x81, len(data)) if len(data) < 126 else (">BBH", 0x81, 126, len(data)))) + data

        await self.follow(begin, writer, frame)

    async def follow(self, number, writer, encoded):
        """Writes documents as they are published, until a fault."""
        while not self.failing and not writer.transport.is_closing():
            end = max(number, self.published())
            for n in range(number, end):
                writer.write(encoded(n))
            number = end
            await writer.drain()
            await asyncio.sleep(0.02)
        return False

    async def page(self, path, request, writer):
        count = self.published() // 2  # each page is a fetch of its own: half the rate
        tag = f'"{count}"'
        if path.startswith("/feed") and tag in request:
            return await self.send(writer, "304 Not Modified", headers=f"ETag: {tag}\r\n")
        if path == "/feed.xml":
            items = "".join(f"<item><title>{n}</title><link>/page/{n}</link></item>" for n in reversed(range(count)))
            body = f"<rss version='2.0'><channel><title>s</title>{items}</channel></rss>"
            return await self.send(writer, "200 OK", "application/rss+xml", body.encode(), f"ETag: {tag}\r\n")
        if path == "/feed.json":
            items = [{"id": str(n), "url": f"/page/{n}"} for n in reversed(range(count))]
            body = json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": "s", "items": items})
            return await self.send(writer, "200 OK", "application/feed+json", body.encode(), f"ETag: {tag}\r\n")
        if path.startswith("/page/"):
            return await self.send(writer, "200 OK", "text/html", page_of(self.text(int(path[6:]))).encode())
        return await self.send(writer, "404 Not Found")

    def documents(self):
        return self.published() // 2 if self.kind in ("rss", "json feed") else self.published()


async def cancel_others():
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
def loop():
    made = asyncio.new_event_loop()
    thread = threading.Thread(target=made.run_forever, daemon=True)
    thread.start()
    yield made
    asyncio.run_coroutine_threadsafe(cancel_others(), made).result()
    made.call_soon_threadsafe(made.stop)
    thread.join()
    made.close()


def read_of(model, host):
    """Documents of a host in the newest checkpoint, and how often the one counted most was counted."""
    found = [count for word, count in counts(model).items()
             if word.startswith(host.name) and word[len(host.name):].isdigit()]
    return len(found), max(found, default=0)


class TestTenSources:
    def test_healthy_ones_keep_their_rate_and_failing_ones_come_back(self, tmp_path, loop):
        kinds = ["sse", "websocket", "rss", "json feed", "sse"]
        healthy = [Host(f"well{'abcde'[i]}", kind, loop, i) for i, kind in enumerate(kinds)]
        failing = [Host(f"sick{'abcde'[i]}", kind, loop, 10 + i) for i, kind in enumerate(kinds)]
        hosts, model = healthy + failing, tmp_path / "m"
        allowed = [word for host in hosts for word in ("--allow-private", host.authority)]
        training = Training(tmp_path, [*(host.source for host in hosts), "--out", model, *QUICK, *allowed])
        try:
            wait_for(lambda: training.assert_running() or all(read_of(model, host)[0] for host in hosts), "all to begin")
            self.check_rates(training, model, healthy, failing)
            self.check_recovery(training, model, hosts, failing)
            training.stop()
        finally:
            training.kill()
        for host in hosts:
            assert read_of(model, host) == (host.documents(), 1), host.name

    def check_rates(self, training, model, healthy, failing):
        """While half of them fail, the healthy ones are read as fast as they publish; what was published in the last
        second may not be in a checkpoint yet."""
        for host in failing:
            host.failing = True
        before = {host.name: (host.documents(), read_of(model, host)[0]) for host in healthy}
        time.sleep(24 if SANITIZED else 12)
        wait_for(lambda: all(host.faults_met > 1 for host in failing), "faults of all")

        def keeps_up(host):
            published, read = host.documents() - before[host.name][0], read_of(model, host)[0] - before[host.name][1]
            return read > 0.95 * published - RATE

        # A machine that is busy may delay all for a moment; who is slower than its host never gets there.
        for host in healthy:
            wait_for(lambda: training.assert_running() or keeps_up(host), f"{host.name} ({host.kind}) to keep its rate")

    def check_recovery(self, training, model, hosts, failing):
        """Once they are well, the failing ones are read to their last document, a minute later at most where cores are quiet."""
        for host in failing:
            host.failing = False
        for host in hosts:
            host.end = time.monotonic()
        wait_for(lambda: training.assert_running() or all(read_of(model, host)[0] >= host.documents() for host in hosts),
                 "the failing ones to come back")
