"""Who may ask the query service: tokens, certificates, names and pages of other sites, over HTTP and gRPC."""
import json
import os
import ssl
import subprocess
import sys
import time

import grpc
import pytest
import support
from serve_support import make_certificates, serving

QUERY, METRICS = "q" * 24, "m" * 24
EXPIRED, WRONG = "e" * 24, "w" * 24
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"]
CALLS = ["/api/nearest", "/api/analogy", "/api/vector", "/api/similarity", "/api/words", "/api/neighbourhood", "/api/drift",
         "/api/model", "/api/progress", "/api/map", "/api/events"]
FIGURES = ["/metrics", "/api/health", "/api/openapi.json"]


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    """The module of the messages, made of the .proto file."""
    folder = tmp_path_factory.mktemp("protos")
    protos = os.path.join(os.path.dirname(__file__), "../protos")
    subprocess.run(["protoc", f"--proto_path={protos}", f"--python_out={folder}", "streamvec_query.proto"], check=True)
    sys.path.insert(0, str(folder))
    import streamvec_query_pb2
    return streamvec_query_pb2


def rpcs(messages):
    """(name, request, reply) of every call in the .proto file."""
    service = messages.DESCRIPTOR.services_by_name["Query"]
    return [(method.name, getattr(messages, method.input_type.name), getattr(messages, method.output_type.name))
            for method in service.methods]


def call(channel, messages, name, request=None, token=None):
    """The reply, or the status code; of Events the first event."""
    request_type, reply_type = next((a, b) for known, a, b in rpcs(messages) if known == name)
    metadata = [("authorization", f"Bearer {token}")] if token else []
    kind = channel.unary_stream if name == "Events" else channel.unary_unary
    ask = kind(f"/streamvec.v1.Query/{name}", request_type.SerializeToString, reply_type.FromString)
    try:
        reply = ask(request or request_type(), metadata=metadata, timeout=support.TIMEOUT_S)
        return next(iter(reply)) if name == "Events" else reply
    except grpc.RpcError as error:
        return error.code()


def grpc_port(service):
    line = next(line for line in service.stdout + service.stderr if "gRPC at" in line)
    return line.split("gRPC at ")[1].strip()


@pytest.fixture(scope="module")
def guarded(trained, tmp_path_factory):
    """A service that asks for tokens, on HTTP and gRPC."""
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    tokens.write_text(f"# who may ask\n{METRICS} metrics\n{EXPIRED} query {time.strftime('%Y-%m-%d', time.gmtime(0))}\n")
    with serving(trained, "--token-file", tokens, "--listen-grpc", "127.0.0.1:0",
                 env={**os.environ, "STREAMVEC_TOKEN": QUERY}) as running:
        yield running


@support.needs("gRPC-service")
class TestTokens:
    @pytest.mark.parametrize("token", [None, WRONG, EXPIRED, "", QUERY[:-1], QUERY + "q"])
    @pytest.mark.parametrize("path", CALLS + FIGURES + ["/api/nothing", "/nothing"])
    def test_without_a_valid_token_every_method_of_every_call_is_refused(self, guarded, path, token):
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        connection = guarded.connect()
        for method in METHODS:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 401 and "Bearer" in answer.headers["WWW-Authenticate"], (method, path, answer.status)
            if answer.will_close:
                connection.close()
                connection = guarded.connect()

    @pytest.mark.parametrize("path", CALLS)
    def test_a_monitors_token_gives_figures_and_nothing_else(self, guarded, path):
        for method in METHODS:
            status = guarded.ask(method, path, headers={"Authorization": f"Bearer {METRICS}"})[0]
            assert status == 403, (method, path)
        for figures in FIGURES:
            assert guarded.ask("GET", figures, headers={"Authorization": f"Bearer {METRICS}"})[0] == 200

    def test_the_right_token_opens_every_call(self, guarded):
        answer = guarded.ask("GET", "/api/nearest?word=aaax", headers={"Authorization": f"Bearer {QUERY}"})
        assert answer[0] == 200 and json.loads(answer[2])["neighbours"]

    def test_a_browser_logs_in_and_out(self, guarded):
        kind = {"Content-Type": "application/json"}
        assert guarded.ask("GET", "/")[0] == 200, "the page that asks for the token"
        assert guarded.ask("POST", "/api/login", json.dumps({"token": WRONG}), kind)[0] == 401
        status, headers, body = guarded.ask("POST", "/api/login", json.dumps({"token": QUERY}), kind)
        cookie = headers["Set-Cookie"]
        assert status == 200 and json.loads(body) == {"role": "query"}
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        assert cookie.startswith(f"streamvec_token_{guarded.port}="), "services on other ports have cookies of their own"
        assert guarded.ask("GET", "/api/model", headers={"Cookie": cookie.split(";")[0]})[0] == 200
        forgotten = guarded.ask("POST", "/api/logout", "{}", kind)[1]["Set-Cookie"]
        assert forgotten.startswith(f"streamvec_token_{guarded.port}=;") and "Max-Age=0" in forgotten

    def test_readers_of_events_go_when_their_token_expires(self, trained, tmp_path, messages):
        for life_s in [8, 30, 90]:  # the service has to be there, and asked, by then
            if self.was_asked_before_it_expired(life_s, trained, tmp_path, messages):
                return
        raise AssertionError("no token lived long enough")

    def was_asked_before_it_expired(self, life_s, trained, tmp_path, messages):
        expires = int(time.time()) + life_s
        tokens = tmp_path / "tokens"
        tokens.write_text(f"{EXPIRED} query {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(expires))}\n{QUERY}\n")
        with serving(trained, "--token-file", tokens, "--listen-grpc", "127.0.0.1:0") as running, \
                grpc.insecure_channel(grpc_port(running)) as channel:
            def events(token):
                connection = running.connect()
                connection.request("GET", "/api/events", headers={"Authorization": f"Bearer {token}"})
                answer = connection.getresponse()
                assert answer.status == 200 or (answer.status == 401 and token == EXPIRED and time.time() >= expires)
                return answer
            stream = channel.unary_stream("/streamvec.v1.Query/Events", messages.EventsRequest.SerializeToString,
                                          messages.Event.FromString)
            told = stream(messages.EventsRequest(), metadata=[("authorization", f"Bearer {EXPIRED}")], timeout=support.TIMEOUT_S)
            passing, lasting = events(EXPIRED), events(QUERY)
            if passing.status == 401 or time.time() >= expires:  # all may have been asked too late
                return False
            lines = []
            while line := passing.readline():
                lines.append(line)
                assert time.time() < expires + support.TIMEOUT_S / 2, "it is not closed"
            assert b"event: model\n" in lines and time.time() >= expires
            with pytest.raises(grpc.RpcError) as error:
                list(told)
            assert error.value.code() == grpc.StatusCode.UNAUTHENTICATED
            assert running.ask("GET", "/api/events", headers={"Authorization": f"Bearer {EXPIRED}"})[0] == 401
            while lasting.readline() != b"event: alive\n":
                assert time.time() < expires + support.TIMEOUT_S / 2, "who may stay is told nothing"
            return True

    def test_tokens_are_never_told(self, guarded, tmp_path, trained):
        weak = tmp_path / "weak"
        weak.write_text("hunter2\n")
        done = support.run("serve", trained, "--token-file", weak, exit=1)
        support.assert_one_line(done.err)
        assert "weak:1" in done.err and "hunter2" not in done.err
        assert not any(QUERY in line or METRICS in line for line in guarded.stdout + guarded.stderr)


@support.needs("gRPC-service")
class TestGrpc:
    @pytest.fixture(scope="class")
    def channel(self, guarded):
        with grpc.insecure_channel(grpc_port(guarded)) as channel:
            yield channel

    @pytest.mark.parametrize("token", [None, WRONG, EXPIRED, QUERY[:-1]])
    def test_without_a_valid_token_every_rpc_is_refused(self, channel, messages, token):
        for name, _, _ in rpcs(messages):
            assert call(channel, messages, name, token=token) == grpc.StatusCode.UNAUTHENTICATED, name

    def test_a_monitors_token_gives_figures_and_nothing_else(self, channel, messages):
        for name, _, reply in rpcs(messages):
            answer = call(channel, messages, name, token=METRICS)
            if name in ["Health", "Metrics"]:
                assert isinstance(answer, reply), name
            else:
                assert answer == grpc.StatusCode.PERMISSION_DENIED, name

    def test_every_rpc_answers_as_http_does(self, channel, messages, guarded):
        def http(path):
            status, _, body = guarded.ask("GET", path, headers={"Authorization": f"Bearer {QUERY}"})
            assert status == 200
            return json.loads(body)

        def rpc(name, **fields):
            request = next(kind for known, kind, _ in rpcs(messages) if known == name)(**fields)
            return call(channel, messages, name, request, token=QUERY)

        def words(neighbours):
            return [(one.word, pytest.approx(one.cosine, abs=1e-5)) for one in neighbours]

        def told(neighbours):
            return [(one["word"], one["cosine"]) for one in neighbours]

        found = rpc("Nearest", words=[messages.WeightedWord(word="aaax"), messages.WeightedWord(word="baax", weight=-0.5)], k=4)
        assert words(found.neighbours) == told(http("/api/nearest?words=aaax&words=baax:-0.5&k=4")["neighbours"])
        assert found.words[0].seen and found.model.number == 1
        vector = rpc("Vector", words=["aaax", "nowhere"])
        assert list(vector.vectors[0].values) == pytest.approx(http("/api/vector?word=aaax")["vectors"][0]["vector"])
        assert not vector.vectors[1].found
        assert rpc("Nearest", vector=vector.vectors[0].values, k=1).neighbours[0].word == "aaax"
        assert words(rpc("Analogy", a="aaax", b="aabx", c="baax").neighbours) == \
            told(http("/api/analogy?a=aaax&b=aabx&c=baax")["neighbours"])
        pairs = [messages.SimilarityRequest.Pair(a="aaax", b="aabx"), messages.SimilarityRequest.Pair(a="aaax", b="nowhere")]
        similar = rpc("Similarity", pairs=pairs).pairs
        assert similar[0].cosine == pytest.approx(http("/api/similarity?a=aaax&b=aabx")["pairs"][0]["cosine"], abs=1e-5)
        assert not similar[1].HasField("cosine")
        assert [one.word for one in rpc("Words", prefix="b", limit=5).words] == \
            [one["word"] for one in http("/api/words?prefix=b&limit=5")["words"]]
        assert words(rpc("Neighbourhood", word="aaax", k=3).path[0].neighbours) == \
            told(http("/api/neighbourhood?word=aaax&k=3")["path"][0]["neighbours"])
        card, shown = rpc("Model"), http("/api/model")
        assert (card.model, card.words, card.dim, json.loads(card.options_json)) == \
            (shown["model"], shown["words"], shown["dim"], shown["options"])
        assert rpc("Health").model.number == 1
        assert "streamvec_model_words 120" in rpc("Metrics").text
        assert json.loads(rpc("Progress").json) == http("/api/progress")
        assert rpc("Events", kinds=["model"]).kind == "model"
        support.wait_for(lambda: hasattr(rpc("Map"), "words"), "the map")
        assert list(rpc("Map").words) == http("/api/map")["words"]

    def test_mistakes_have_their_codes(self, channel, messages):
        def rpc(name, **fields):
            request = next(kind for known, kind, _ in rpcs(messages) if known == name)(**fields)
            return call(channel, messages, name, request, token=QUERY)
        assert rpc("Nearest") == grpc.StatusCode.INVALID_ARGUMENT
        assert rpc("Nearest", words=[messages.WeightedWord(word="nowhere")]) == grpc.StatusCode.NOT_FOUND
        assert rpc("Nearest", vector=[1, 2]) == grpc.StatusCode.INVALID_ARGUMENT
        opposed = [messages.WeightedWord(word="aaax"), messages.WeightedWord(word="aaax", weight=-1)]
        assert rpc("Nearest", words=opposed) == grpc.StatusCode.INVALID_ARGUMENT
        assert rpc("Analogy", a="aaax", b="aabx", c="baax", k=-1) == grpc.StatusCode.INVALID_ARGUMENT
        assert rpc("Drift") == grpc.StatusCode.FAILED_PRECONDITION
        assert rpc("Words", limit=100_000) == grpc.StatusCode.INVALID_ARGUMENT
        assert rpc("Events", kinds=["weather"]) == grpc.StatusCode.INVALID_ARGUMENT
        assert rpc("Nearest", words=[messages.WeightedWord(word="x" * 2_000_000)]) == grpc.StatusCode.RESOURCE_EXHAUSTED
        unknown = channel.unary_unary("/streamvec.v1.Query/Nothing")
        with pytest.raises(grpc.RpcError) as error:
            unknown(b"", metadata=[("authorization", f"Bearer {QUERY}")])
        assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED
        garbage = channel.unary_unary("/streamvec.v1.Query/Nearest")
        with pytest.raises(grpc.RpcError) as error:
            garbage(b"\xff\xff\xff\xff", metadata=[("authorization", f"Bearer {QUERY}")])
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT


@support.needs("gRPC-service")
class TestCertificates:
    @pytest.fixture(scope="class")
    def files(self, tmp_path_factory):
        return make_certificates(tmp_path_factory.mktemp("certificates"))

    @pytest.fixture(scope="class")
    def secured(self, trained, files):
        with serving(trained, "--tls-certificate", files / "server.pem", "--tls-key", files / "server.key", "--tls-client-ca",
                     files / "ca.pem", "--listen-grpc", "127.0.0.1:0") as running:
            yield running

    def context(self, files, name):
        context = ssl.create_default_context(cafile=files / "ca.pem")
        if name:
            context.load_cert_chain(files / f"{name}.pem", files / f"{name}.key")
        return context

    @pytest.mark.parametrize("name", [None, "foreign", "wrong-use", "expired"])
    def test_clients_without_a_valid_certificate_are_not_talked_to(self, secured, files, name):
        context = self.context(files, name)
        for method in METHODS:
            for path in ["/", "/api/nearest?word=aaax", "/api/events", "/metrics", "/api/health"]:
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    secured.ask(method, path, context=context)

    def test_a_certificates_role_is_what_its_unit_says(self, secured, files):
        for name, calls, figures in [("query", 200, 200), ("plain", 200, 200), ("metrics", 403, 200), ("stranger", 403, 403)]:
            context = self.context(files, name)
            assert secured.ask("GET", "/api/nearest?word=aaax", context=context)[0] == calls, name
            assert secured.ask("GET", "/metrics", context=context)[0] == figures, name
            assert secured.ask("DELETE", "/api/nearest", context=context)[0] == (405 if calls == 200 else 403), name

    @pytest.mark.parametrize("name,paths", [("metrics", CALLS), ("stranger", CALLS + FIGURES)])
    def test_a_certificate_of_another_role_is_refused_every_method_of_every_call(self, secured, files, name, paths):
        context = self.context(files, name)
        for path in paths:
            for method in METHODS:
                assert secured.ask(method, path, context=context)[0] == 403, (method, path)

    def test_old_tls_and_plain_text_are_refused(self, secured, files):
        context = self.context(files, "query")
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError, ValueError)):
            secured.ask("GET", "/api/health", context=context)
        assert b"200" not in secured.raw(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n")

    @pytest.mark.parametrize("name", [None, "foreign", "wrong-use", "expired", "metrics", "stranger"])
    def test_the_same_holds_for_every_rpc(self, secured, files, messages, name):
        key = (files / f"{name}.key").read_bytes() if name else None
        chain = (files / f"{name}.pem").read_bytes() if name else None
        credentials = grpc.ssl_channel_credentials((files / "ca.pem").read_bytes(), key, chain)
        with grpc.secure_channel(grpc_port(secured), credentials) as channel:
            for rpc, _, reply in rpcs(messages):
                answer = call(channel, messages, rpc)
                if name in ["metrics", "stranger"]:
                    allowed = name == "metrics" and rpc in ["Health", "Metrics"]
                    assert isinstance(answer, reply) if allowed else answer == grpc.StatusCode.PERMISSION_DENIED, rpc
                else:
                    assert answer == grpc.StatusCode.UNAVAILABLE, rpc

    def test_a_good_certificate_opens_every_rpc(self, secured, files, messages):
        credentials = grpc.ssl_channel_credentials((files / "ca.pem").read_bytes(), (files / "query.key").read_bytes(),
                                                   (files / "query.pem").read_bytes())
        with grpc.secure_channel(grpc_port(secured), credentials) as channel:
            assert call(channel, messages, "Health").model.number == 1

    def test_files_that_do_not_fit_end_the_program(self, trained, files):
        for certificate, key in [("server.pem", "query.key"), ("server.csr", "server.key"), ("nothing.pem", "server.key")]:
            done = support.run("serve", trained, "--listen", "127.0.0.1:0", "--tls-certificate", files / certificate, "--tls-key",
                               files / key, exit=1)
            support.assert_one_line(done.err)
        done = support.run("serve", trained, "--listen", "127.0.0.1:0", "--tls-key", files / "server.key", exit=2)
        assert "--tls-certificate" in done.err


class TestSites:
    @pytest.fixture(scope="class")
    def open_service(self, trained):
        with serving(trained, "--allow-host", "words.example", "--allow-origin", "https://friend.example") as running:
            yield running

    @pytest.mark.parametrize("path", CALLS + FIGURES + ["/", "/api/login"])
    def test_other_names_are_refused_everywhere(self, open_service, path):
        for method in ["GET", "POST", "OPTIONS"]:
            for host in ["evil.example", f"evil.example:{open_service.port}", "127.0.0.1.evil.example", ""]:
                assert open_service.ask(method, path, headers={"Host": host})[0] == 421, (method, path, host)

    @pytest.mark.parametrize("path", CALLS + FIGURES + ["/api/login"])
    def test_pages_of_other_sites_are_refused_everywhere(self, open_service, path):
        for method in ["GET", "POST", "OPTIONS"]:
            for headers in [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
                            {"Origin": f"http://127.0.0.1:{open_service.port + 1}"}]:
                status, answered, _ = open_service.ask(method, path, headers=headers)
                assert status == 403 and "Access-Control-Allow-Origin" not in answered, (method, path, headers)

    def test_names_and_sites_that_were_allowed_are(self, open_service):
        own = f"http://127.0.0.1:{open_service.port}"
        assert open_service.ask("GET", "/api/model", headers={"Host": "words.example"})[0] == 200
        assert open_service.ask("GET", "/api/model", headers={"Origin": own, "Sec-Fetch-Site": "same-origin"})[0] == 200
        status, headers, _ = open_service.ask("GET", "/api/model", headers={"Origin": "https://friend.example",
                                                                             "Sec-Fetch-Site": "cross-site"})
        assert status == 200 and headers["Access-Control-Allow-Origin"] == "https://friend.example"
        status, headers, _ = open_service.ask("OPTIONS", "/api/nearest", headers={"Origin": "https://friend.example"})
        assert status == 204 and "POST" in headers["Access-Control-Allow-Methods"]

    def test_pages_that_were_allowed_can_read_events_and_refusals(self, open_service):
        friend = {"Origin": "https://friend.example", "Sec-Fetch-Site": "cross-site"}
        for method, path, status in [("HEAD", "/api/events", 200), ("POST", "/api/nearest", 415), ("PUT", "/api/nearest", 405)]:
            answered, headers, _ = open_service.ask(method, path, headers=friend)
            assert answered == status and headers["Access-Control-Allow-Origin"] == "https://friend.example", (method, path)
        connection = open_service.connect()
        connection.request("GET", "/api/events", headers=friend)
        assert connection.getresponse().headers["Access-Control-Allow-Origin"] == "https://friend.example"
        connection.close()

    def test_other_names_are_refused_in_whole_addresses(self, open_service):
        for host in ["evil.example", "127.0.0.1@evil.example"]:
            assert open_service.ask("GET", f"http://{host}/api/model")[0] == 421

    @pytest.mark.parametrize("path", ["/../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/etc/passwd", "/./index.html",
                                      "//etc/passwd", "/index.html/../../etc/passwd", "/..\\..\\etc\\passwd", "/%5c..%5cetc",
                                      "/%252e%252e/etc/passwd", "/index.html%00.js", "http:///index.html", "ftp://localhost/"])
    def test_ways_out_of_the_pages_are_refused(self, open_service, path):
        status, _, body = open_service.ask("GET", path)
        assert status == 400 and b"root:" not in body
