"""Clients that are slow, large, many or mad: the others do not notice, and memory stays bounded."""
import contextlib
import json
import resource
import socket
import struct
import threading
import time

import pytest
import support
from serve_support import Events, read_all, serving

# A thousand connections are a thousand files here, too.
_, FILES_MAX = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES_MAX, 8192), FILES_MAX))

REQUEST = b"GET /api/nearest?word=aaax&k=3 HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(scope="module")
def service(trained):
    with serving(trained) as running:
        yield running


def status_of(answer):
    return int(answer.split(b" ", 2)[1]) if answer else None


def ask_once(service, source=None):
    status, _, body = service.ask("GET", "/api/nearest?word=aaax&k=3", source=source)
    assert status == 200 and len(json.loads(body)["neighbours"]) == 3


def resident_mb(service):
    with open(f"/proc/{service.process.pid}/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() / 1e6


def ask_metric(connection, name):
    connection.request("GET", "/metrics")
    return next(line.split()[1] for line in connection.getresponse().read().decode().splitlines() if line.startswith(name + " "))


class TestOddRequests:
    @pytest.mark.parametrize("request_bytes,status", [
        (b"\x00\x01\x02\x03\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 TLS hello \r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (b"GET\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 505),
        (REQUEST + b"Bad Header\r\n\r\n", 400),
        (REQUEST + b"X: a\x00b\r\n\r\n", 400),
        (REQUEST + b"Content-Length: x\r\n\r\n", 400),
        (REQUEST + b"Content-Length: -1\r\n\r\n", 400),
        (REQUEST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
        (REQUEST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (REQUEST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (REQUEST + b"Host: evil.example\r\n\r\n", 421),
        (REQUEST + b"Expect: the-unexpected\r\n\r\n", 417),
        (REQUEST + b"X: " + b"x" * 40_000 + b"\r\n\r\n", 431),
        (REQUEST + b"".join(b"X%d: y\r\n" % i for i in range(200)) + b"\r\n", 431),
        (b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 431),
        (b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 431),
        (b"GET /api/model HTTP/1.1\r\n\r\n", 421),
    ])
    def test_what_is_no_request_is_refused_and_closed(self, service, request_bytes, status):
        assert status_of(service.raw(request_bytes)) == status
        ask_once(service)

    def test_requests_may_come_in_single_bytes_and_in_one_piece(self, service):
        with service.socket() as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in REQUEST + b"Connection: close\r\n\r\n":
                connection.sendall(bytes([byte]))
            assert status_of(read_all(connection)) == 200
        three = service.raw((REQUEST + b"\r\n") * 2 + REQUEST + b"Connection: close\r\n\r\n")
        assert three.count(b"HTTP/1.1 200 OK") == 3

    def test_chunked_bodies_and_expectations_are_understood(self, service):
        body = b'{"word":"aaax","k":3}'
        head = b"POST /api/nearest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
        chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
        assert status_of(service.raw(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)) == 200
        with service.socket() as connection:
            connection.sendall(head + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
            assert connection.recv(100).startswith(b"HTTP/1.1 100 Continue")
            connection.sendall(body)
            assert status_of(read_all(connection)) == 200

    def test_old_clients_are_answered_and_closed(self, service):
        answer = service.raw(b"GET /api/health HTTP/1.0\r\nHost: localhost\r\n\r\n")
        assert status_of(answer) == 200 and b"Connection: close" in answer


class TestSizes:
    def test_bodies_over_the_cap_are_refused_before_they_are_read(self, service):
        head = b"POST /api/nearest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with service.socket() as connection:
            connection.sendall(head + b"Content-Length: 10000000\r\n\r\n")
            assert status_of(connection.recv(100)) == 413
        with service.socket() as connection:  # of unknown length
            connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
            with contextlib.suppress(OSError):
                for _ in range(64):
                    connection.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
            assert status_of(read_all(connection)) == 413

    def test_a_cap_above_what_all_bodies_may_have_still_lets_one_in(self, trained):
        head = b"POST /api/nearest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
        with serving(trained, "--body-max", "100000000") as running:
            answer = running.raw(head + b"Transfer-Encoding: chunked\r\n\r\n16\r\n" + b'{"word":"aaax","k":3} ' + b"\r\n0\r\n\r\n")
            assert status_of(answer) == 200

    def test_a_client_that_sends_on_still_gets_its_refusal(self, service):
        status, _, body = service.ask("POST", "/api/nearest", b" " * 3_000_000, {"Content-Type": "application/json"})
        assert status == 413 and b"too large" in body

    def test_many_large_bodies_do_not_add_up(self, trained):
        """200 clients that each begin a body of a megabyte: more than may be under way at once."""
        head = (b"POST /api/nearest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 1048576\r\n\r\n")
        with serving(trained) as running, contextlib.ExitStack() as open_sockets:
            before = resident_mb(running)
            clients = []
            for _ in range(200):
                client = open_sockets.enter_context(running.socket())
                with contextlib.suppress(OSError):
                    client.sendall(head + b" " * 1_000_000)
                clients.append(client)
            assert resident_mb(running) - before < 200
            ask_once(running)


class TestManyClients:
    def test_a_thousand_open_connections_do_not_keep_others_out(self, service):
        with contextlib.ExitStack() as open_sockets:
            clients = [open_sockets.enter_context(service.socket()) for _ in range(1000)]
            for client in clients[::2]:
                client.sendall(REQUEST + b"\r\n")
            ask_once(service)
            for client in clients[::2]:
                assert status_of(client.recv(100)) == 200
            assert service.metric("streamvec_http_connections") >= 1000
            assert resident_mb(service) < 400
        support.wait_for(lambda: service.metric("streamvec_http_connections") < 10, "connections to go")

    def test_past_the_cap_the_one_idle_for_longest_makes_room(self, trained):
        with serving(trained, "--connections-max", 20) as running, contextlib.ExitStack() as open_sockets:
            first = open_sockets.enter_context(running.socket())
            first.sendall(REQUEST + b"\r\n")
            assert status_of(first.recv(4096)) == 200
            crowd = [open_sockets.enter_context(running.socket()) for _ in range(60)]
            ask_once(running)
            crowd[-1].sendall(REQUEST + b"\r\n")
            assert status_of(crowd[-1].recv(100)) == 200
            first.settimeout(support.TIMEOUT_S)
            while first.recv(4096):  # to its end: it was closed
                pass

    def test_one_address_has_so_many_connections_and_another_its_own(self, trained):
        with serving(trained, "--client-connections", 5) as running, contextlib.ExitStack() as open_sockets:
            mine = [open_sockets.enter_context(running.socket()) for _ in range(5)]
            for client in mine:
                client.sendall(REQUEST + b"\r\n")
                assert status_of(client.recv(4096)) == 200
            with running.socket() as sixth:
                answer = read_all(sixth)
                assert status_of(answer) == 503
                assert json.loads(answer.split(b"\r\n\r\n")[1])["error"]["code"] == "UNAVAILABLE"
            ask_once(running, source="127.0.0.2")

    def test_one_address_asks_so_often_and_another_at_its_own_rate(self, trained):
        with serving(trained, "--client-rate", 20) as running:
            answers = running.raw((REQUEST + b"\r\n") * 2000)
            assert 20 <= answers.count(b"HTTP/1.1 200") < 2000 and b"HTTP/1.1 429" in answers
            ask_once(running, source="127.0.0.2")


class TestSlowClients:
    @pytest.fixture(scope="class")
    def watched(self, trained):
        with serving(trained) as running:
            yield running

    @pytest.fixture
    def impatient(self, trained):
        with serving(trained, "--request-timeout", 2) as running:
            yield running

    def test_requests_that_drip_are_cut_off_and_delay_nobody(self, impatient):
        """A header that never ends, one byte at a time, from 300 connections: slowloris."""
        with contextlib.ExitStack() as open_sockets:
            honest = impatient.connect()  # asks in one piece, again and again

            def ask():
                honest.request("GET", "/api/nearest?word=aaax&k=3")
                answer = honest.getresponse()
                return answer.status, answer.read()
            assert ask()[0] in (200, 408)
            clients = [open_sockets.enter_context(impatient.socket()) for _ in range(300)]
            for client in clients:
                client.sendall(REQUEST)
            stop = threading.Event()

            def drip():
                while not stop.wait(0.5):
                    for client in clients:
                        with contextlib.suppress(OSError):
                            client.send(b"X")
            dripping = threading.Thread(target=drip)
            dripping.start()
            try:
                for _ in range(20):
                    assert ask()[0] == 200
                slow = "streamvec_http_too_slow_total"
                support.wait_for(lambda: int(ask_metric(honest, slow)) >= 300, "the slow to be cut off")
            finally:
                stop.set()
                dripping.join()
            for client in clients[:5]:
                assert status_of(read_all(client)) in (408, None)

    def test_readers_of_events_that_take_nothing_are_left(self, watched):
        """Their buffers fill up; everybody else goes on."""
        with contextlib.ExitStack() as open_sockets:
            for _ in range(10):
                client = open_sockets.enter_context(watched.socket())
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.sendall(b"GET /api/events?kind=map HTTP/1.1\r\nHost: localhost\r\n\r\n")
            events = Events(watched, "model", "map")
            events.await_one("map")
            for _ in range(20):
                ask_once(watched)
            events.close()
        support.wait_for(lambda: watched.metric("streamvec_http_event_readers") == 0, "readers to be left")

    @pytest.mark.skipif(support.SANITIZED, reason="sanitizers keep memory that was given back")
    def test_answers_that_nobody_takes_do_not_pile_up(self, watched):
        ask = (b"GET /api/nearest?word=aaax&k=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n") * 2000
        before = resident_mb(watched)
        with watched.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(2)
            with contextlib.suppress(OSError):
                for _ in range(50):
                    client.sendall(ask)
            ask_once(watched)
            assert resident_mb(watched) - before < 100

    def test_clients_that_vanish_leave_nothing_behind(self, watched):
        for _ in range(200):
            client = watched.socket()
            client.sendall(REQUEST + b"\r\n")
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()  # a reset
        ask_once(watched)
        support.wait_for(lambda: watched.metric("streamvec_http_connections") < 20, "connections to go")


class TestStopping:
    def test_it_stops_at_once_whoever_is_connected(self, trained):
        with serving(trained) as running, contextlib.ExitStack() as open_sockets:
            for _ in range(50):
                open_sockets.enter_context(running.socket()).sendall(REQUEST)
            events = Events(running)
            begin = time.monotonic()
            assert running.stop() == 0
            assert time.monotonic() - begin < support.TIMEOUT_S / 2
            events.close()
