"""The query service from outside: every call, every error, events, swapping models under load."""
import json
import shutil
import threading

import pytest
import support
from serve_support import Events, serving


@pytest.fixture(scope="module")
def service(trained):
    with serving(trained) as running:
        yield running


@pytest.fixture(scope="module")
def generating(tmp_path_factory):
    """A model that makes vectors of spellings."""
    folder = tmp_path_factory.mktemp("subword")
    (folder / "text.txt").write_text(support.text_of_endings(500))
    support.run("train", folder / "text.txt", "--out", folder / "model", "--model", "subword", "--dim", 16, "--threads", 1,
                "--bucket", 2000, exit=0)
    with serving(folder / "model") as running:
        yield running


def conforms(value, schema):
    """Whether a JSON value is as an OpenAPI schema says: every field named, no other kind of value."""
    if value is None:
        return schema.get("nullable", False) or "type" not in schema
    kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}
    if "type" in schema and not isinstance(value, kinds[schema["type"]]):
        return False
    if schema.get("type") == "array":
        return all(conforms(item, schema["items"]) for item in value)
    if schema.get("type") == "object":
        return (set(schema["required"]) == set(value) and
                all(conforms(value[name], part) for name, part in schema["properties"].items()))
    return True


class TestCalls:
    def test_nearest_answers_as_the_command_does(self, service, trained):
        told = json.loads(support.run("nearest", trained, "aaax", "-k", 5, "--json", exit=0).out)[0]["neighbours"]
        answer = service.get("/api/nearest", word="aaax", k=5)
        assert [one["word"] for one in answer["neighbours"]] == [one["word"] for one in told]
        assert [one["cosine"] for one in answer["neighbours"]] == pytest.approx([one["cosine"] for one in told], abs=1e-5)
        assert answer["words"] == [{"word": "aaax", "seen": True, "weight": 1}]
        assert all(one["word"][0] == "a" and one["count"] > 0 for one in answer["neighbours"])

    def test_nearest_to_a_vector_finds_its_word(self, service):
        vector = service.get("/api/vector", word="baax")["vectors"][0]["vector"]
        found = service.post("/api/nearest", {"vector": [3 * value for value in vector], "k": 1})["neighbours"]
        assert found[0]["word"] == "baax" and found[0]["cosine"] == pytest.approx(1, abs=1e-5)

    def test_nearest_to_weighted_words_leaves_them_out(self, service):
        posted = service.post("/api/nearest", {"words": ["aaax", {"word": "baax", "weight": -0.5}], "k": 3})
        asked = service.get("/api/nearest", words=["aaax", "baax:-0.5"], k=3)
        assert posted == asked
        assert {"aaax", "baax"}.isdisjoint(one["word"] for one in posted["neighbours"])
        assert posted["words"][1] == {"word": "baax", "seen": True, "weight": -0.5}

    def test_analogy_answers_as_the_command_does(self, service, trained):
        told = json.loads(support.run("analogy", trained, "aaax", "aabx", "baax", "-k", 4, "--json", exit=0).out)
        words = [one["word"] for one in service.get("/api/analogy", a="aaax", b="aabx", c="baax", k=4)["neighbours"]]
        assert words == [one["word"] for one in told["answers"]]

    def test_vector_is_what_the_command_prints(self, service, trained):
        told = json.loads(support.run("vector", trained, "aaax", "--json", exit=0).out)[0]["vector"]
        answer = service.get("/api/vector", word=["aaax", "nowhere"])
        assert answer["vectors"][0]["vector"] == pytest.approx(told, abs=1e-5) and answer["dim"] == len(told)
        assert answer["vectors"][1] == {"word": "nowhere", "found": False, "seen": False, "vector": None}

    def test_similarity_of_one_pair_and_of_many(self, service):
        one = service.get("/api/similarity", a="aaax", b="aabx")["pairs"][0]
        many = service.post("/api/similarity", {"pairs": [["aaax", "aabx"], ["aaax", "caax"], ["aaax", "nowhere"]]})["pairs"]
        assert many[0] == one and one["cosine"] > many[1]["cosine"]
        assert many[2]["cosine"] is None

    def test_words_by_prefix_come_by_frequency(self, service, trained):
        counts = dict(support.vocabulary(trained))
        words = [one["word"] for one in service.get("/api/words", prefix="b", limit=7)["words"]]
        wanted = sorted((word for word in counts if word.startswith("b")), key=lambda word: (-counts[word], word))
        assert words == wanted[:7]
        assert service.get("/api/words", prefix="BA", limit=1)["words"], "folded where nothing is found as written"
        assert service.get("/api/words", prefix="zzz")["words"] == []
        first = [one["count"] for one in service.get("/api/words", limit=10)["words"]]
        assert first == sorted(counts.values(), reverse=True)[:10]

    def test_the_model_card_says_what_is_served(self, service, trained):
        card = service.get("/api/model")
        assert (card["model"], card["words"], card["dim"]) == ("sgns", len(support.vocabulary(trained)), 24)
        assert card["makes_unseen_words"] is False and card["options"]["window"] == 5

    def test_the_map_has_a_place_for_each_word(self, service):
        support.wait_for(lambda: service.ask("GET", "/api/map")[0] == 200, "the map")
        picture = service.get("/api/map")
        assert len(picture["words"]) == len(picture["x"]) == len(picture["y"]) == len(picture["counts"]) == 120
        assert all(-2 < value < 2 for value in picture["x"] + picture["y"])

    def test_health_metrics_and_pages(self, service):
        assert service.get("/api/health")["status"] == "ok"
        assert service.metric("streamvec_model_words") == 120
        assert service.metric('streamvec_calls_total{call="/api/health",status="2xx"}') >= 1
        status, headers, body = service.ask("GET", "/")
        assert status == 200 and b"streamvec" in body
        assert "default-src 'none'" in headers["Content-Security-Policy"] and headers["X-Content-Type-Options"] == "nosniff"
        tag = headers["ETag"]
        for known in [tag, f"W/{tag}", f'"other", {tag}', f'"other" ,W/{tag} ', "*"]:
            assert service.ask("GET", "/", headers={"If-None-Match": known})[0] == 304, known
        assert service.ask("GET", "/", headers={"If-None-Match": f'"other", x{tag}'})[0] == 200

    def test_refusals_count_as_calls_and_say_nothing_of_how_long_calls_take(self, service):
        def counted(call):
            return service.metric(f'streamvec_calls_total{{call="{call}",status="4xx"}}') or 0

        took = 'streamvec_call_seconds_count{call="/api/model"}'
        calls = ["/api/model", "pages", "other"]
        before, timed = [counted(call) for call in calls], service.metric(took)
        for method, path, headers, status in [
                ("DELETE", "/api/model", {}, 405), ("GET", "/api/model", {"Host": "evil.example"}, 421),
                ("GET", "/api/model", {"Origin": "https://evil.example"}, 403), ("POST", "/", {}, 405),
                ("GET", "/nothing", {}, 404), ("GET", "/../x", {}, 400)]:
            assert service.ask(method, path, headers=headers)[0] == status
        assert [counted(call) for call in calls] == [before[0] + 3, before[1] + 1, before[2] + 2]
        assert service.metric(took) == timed

    def test_whole_addresses_are_understood_as_proxies_send_them(self, service):
        status, _, body = service.ask("GET", f"http://127.0.0.1:{service.port}/api/model", headers={"Host": "proxy.example"})
        assert status == 200 and json.loads(body)["dim"] == 24

    def test_a_word_has_one_station_where_there_is_no_history(self, service):
        path = service.get("/api/neighbourhood", word="aaax", k=3)["path"]
        assert len(path) == 1 and len(path[0]["neighbours"]) == 3
        assert service.get("/api/drift", expect=409)["error"]["code"] == "FAILED_PRECONDITION"

    def test_head_has_the_headers_of_get_and_no_body(self, service):
        status, headers, body = service.ask("HEAD", "/api/nearest?word=aaax")
        assert status == 200 and body == b"" and int(headers["Content-Length"]) > 100


class TestUnseenWords:
    def test_words_never_seen_have_vectors_and_neighbours_and_are_marked(self, generating):
        answer = generating.get("/api/nearest", word="zzzzzation", k=5)
        assert answer["words"] == [{"word": "zzzzzation", "seen": False, "weight": 1}]
        assert sum(one["word"].endswith("ation") for one in answer["neighbours"]) >= 3
        vectors = generating.get("/api/vector", word=["zzzzzation"])["vectors"]
        assert vectors[0]["found"] and not vectors[0]["seen"] and len(vectors[0]["vector"]) == 16
        assert generating.get("/api/model")["makes_unseen_words"] is True
        assert generating.get("/api/similarity", a="zzzzzation", b="yyyyyation")["pairs"][0]["seen"] is False


class TestErrors:
    @pytest.mark.parametrize("path,status,code", [
        ("/api/nearest", 400, "INVALID_ARGUMENT"),
        ("/api/nearest?word=nowhere", 404, "NOT_FOUND"),
        ("/api/nearest?word=aaax&vector=1", 400, "INVALID_ARGUMENT"),
        ("/api/nearest?word=aaax&k=0", 400, "INVALID_ARGUMENT"),
        ("/api/nearest?word=aaax&k=1001", 400, "INVALID_ARGUMENT"),
        ("/api/nearest?word=aaax&k=ten", 400, "INVALID_ARGUMENT"),
        ("/api/nearest?word=aaax&wrod=x", 400, "INVALID_ARGUMENT"),
        ("/api/nearest?word=aaax&word=b", 400, "INVALID_ARGUMENT"),
        ("/api/nearest?word=%zz", 400, "INVALID_ARGUMENT"),
        ("/api/nearest?words=aaax:1e300", 400, "INVALID_ARGUMENT"),
        ("/api/nearest?words=aaax&words=aaax:-1", 400, "INVALID_ARGUMENT"),
        ("/api/nearest?words=aaax:0", 400, "INVALID_ARGUMENT"),
        ("/api/analogy?a=aaax&b=aabx", 400, "INVALID_ARGUMENT"),
        ("/api/vector", 400, "INVALID_ARGUMENT"),
        ("/api/similarity?a=aaax", 400, "INVALID_ARGUMENT"),
        ("/api/similarity?a=aaax&b=nowhere", 404, "NOT_FOUND"),
        ("/api/words?limit=100000", 400, "INVALID_ARGUMENT"),
        ("/api/neighbourhood?word=nowhere", 404, "NOT_FOUND"),
        ("/api/events?kind=weather", 400, "INVALID_ARGUMENT"),
        ("/api/nothing", 404, "NOT_FOUND"),
        ("/nothing.html", 404, "NOT_FOUND"),
    ])
    def test_every_mistake_has_its_code_and_a_message(self, service, path, status, code):
        got, headers, body = service.ask("GET", path)
        assert got == status and headers["Content-Type"] == "application/json"
        error = json.loads(body)["error"]
        assert error["code"] == code and len(error["message"]) > 5

    @pytest.mark.parametrize("body", [b"", b"[]", b"{", b"null", b'{"word":1}', b'{"words":[["aaax"]]}', b'{"vector":[1,2]}',
                                      b'{"vector":"aaax"}', b'{"vector":[1e999]}', b'{"word":"aaax","k":2.5}', b"[" * 100_000,
                                      b'{"words":[{"word":"aaax","weight":"much"}]}', b"\xff\xfe"])
    def test_bodies_that_are_not_as_they_should_be(self, service, body):
        status, _, answer = service.ask("POST", "/api/nearest", body, {"Content-Type": "application/json"})
        assert status == 400, answer
        assert json.loads(answer)["error"]["code"] == "INVALID_ARGUMENT"

    def test_methods_and_types_that_a_call_does_not_have(self, service):
        status, headers, _ = service.ask("DELETE", "/api/nearest?word=aaax")
        assert status == 405 and "GET" in headers["Allow"]
        assert service.ask("POST", "/api/model", "{}", {"Content-Type": "application/json"})[0] == 405
        assert service.ask("POST", "/", "{}", {"Content-Type": "application/json"})[0] == 405
        for kind in ["application/x-www-form-urlencoded", "application/jsonx", "text/application/json", ""]:
            assert service.ask("POST", "/api/nearest", '{"word":"aaax"}', {"Content-Type": kind})[0] == 415, kind
        for kind in ["Application/JSON", "application/json; charset=utf-8", "application/json ;x"]:
            assert service.ask("POST", "/api/nearest", '{"word":"aaax"}', {"Content-Type": kind})[0] == 200, kind

    def test_words_of_any_bytes_come_back_as_text(self, service):
        status, _, body = service.ask("GET", "/api/nearest?word=%ff%00%3Cscript%3E")
        assert status == 404 and "<script>" in json.loads(body.decode())["error"]["message"]

    def test_the_program_says_what_is_wrong(self, tmp_path, trained):
        assert "nothing" in support.run("serve", tmp_path / "nothing", "--listen", "127.0.0.1:0", exit=1).err
        done = support.run("serve", trained, "--listen", "0.0.0.0:0", exit=1)
        support.assert_one_line(done.err)
        assert "token" in done.err
        done = support.run("serve", trained, "--listen", "127.0.0.1", exit=2)
        assert "host:port" in done.err
        with serving(trained) as other:
            done = support.run("serve", trained, "--listen", f"127.0.0.1:{other.port}", exit=1)
            support.assert_one_line(done.err)
            assert "in use" in done.err
        for site in ["foo", "https://example.org/app"]:
            done = support.run("serve", trained, "--listen", "127.0.0.1:0", "--allow-origin", site, exit=2)
            support.assert_one_line(done.err)
            assert site in done.err


class TestOpenApi:
    def test_the_document_is_what_is_routed(self, service):
        document = service.get("/api/openapi.json")
        for path, operations in document["paths"].items():
            for method in ["GET", "POST", "PUT", "DELETE", "PATCH"]:
                status = service.ask(method, path, "{}" if method != "GET" else None, {"Content-Type": "application/json"})[0] \
                    if path != "/api/events" or method != "GET" else 200
                assert (status == 405) == (method.lower() not in operations), (path, method, status)

    def test_parameters_are_as_the_document_says(self, service):
        for path, operations in service.get("/api/openapi.json")["paths"].items():
            for parameter in operations.get("get", {}).get("parameters", []):
                if parameter["schema"]["type"] == "integer":
                    assert service.ask("GET", f"{path}?{parameter['name']}=x")[0] == 400
                if parameter["required"]:
                    assert "is missing" in service.get(path, expect=400)["error"]["message"]
            if "get" in operations:
                assert "no_such_thing" in service.get(path, expect=400, no_such_thing=1)["error"]["message"]

    @pytest.mark.parametrize("path", ["/api/nearest?word=aaax", "/api/analogy?a=aaax&b=aabx&c=baax",
                                      "/api/vector?word=aaax", "/api/similarity?a=aaax&b=baax", "/api/words?prefix=a",
                                      "/api/neighbourhood?word=aaax", "/api/model", "/api/progress", "/api/map", "/api/health"])
    def test_answers_have_the_documents_shape(self, service, path):
        paths = service.get("/api/openapi.json")["paths"]
        schema = paths[path.split("?")[0]]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        support.wait_for(lambda: service.ask("GET", "/api/map")[0] == 200, "the map")
        assert conforms(service.get(path), schema), (service.get(path), schema)

    def test_errors_have_the_documents_shape(self, service):
        schema = service.get("/api/openapi.json")["components"]["schemas"]["Error"]
        assert conforms(service.get("/api/nearest", expect=400), schema)


class TestNewModels:
    def copy_of(self, trained, folder):
        shutil.copytree(trained, folder)
        return folder

    def test_a_new_checkpoint_is_served_without_one_failed_query(self, trained, tmp_path):
        text = tmp_path / "more.txt"
        text.write_text(support.topical_text(20_000, seed=5))
        model = self.copy_of(trained, tmp_path / "model")
        with serving(model) as running:
            numbers, failures, stop = set(), [], threading.Event()

            def ask():
                connection = running.connect()
                while not stop.is_set():
                    connection.request("GET", "/api/nearest?word=aaax&k=5")
                    answer = connection.getresponse()
                    body = json.loads(answer.read())
                    if answer.status != 200 or len(body["neighbours"]) != 5:
                        failures.append(body)
                    else:
                        numbers.add(body["model"]["number"])
            threads = [threading.Thread(target=ask) for _ in range(4)]
            for thread in threads:
                thread.start()
            try:
                for round in range(3):
                    before = running.get("/api/model")["step"]
                    support.run("train", text, "--out", model, "--threads", 1, exit=0)
                    support.wait_for(lambda: running.get("/api/model")["step"] > before, "the new model")
            finally:
                stop.set()
                for thread in threads:
                    thread.join()
            assert not failures and len(numbers) >= 3, (failures[:3], numbers)

    def test_readers_of_events_are_told(self, trained, tmp_path):
        model = self.copy_of(trained, tmp_path / "model")
        text = tmp_path / "more.txt"
        text.write_text(support.topical_text(5_000, seed=6))
        with serving(model) as running:
            events = Events(running, "model", "map")
            assert events.await_one("model")["number"] == 1
            first = events.await_one("map")
            support.run("train", text, "--out", model, "--threads", 1, exit=0)
            assert events.await_one("model", lambda data: data["number"] == 2)["words"] >= 120
            second = events.await_one("map", lambda data: data["model"] == 2)
            events.close()
        # What hardly changed hardly moved.
        places = {word: (x, y) for word, x, y in zip(first["words"], first["x"], first["y"])}
        moves = [((places[word][0] - x) ** 2 + (places[word][1] - y) ** 2) ** 0.5
                 for word, x, y in zip(second["words"], second["x"], second["y"]) if word in places]
        assert sorted(moves)[len(moves) // 2] < 0.3

    def test_a_damaged_checkpoint_leaves_the_old_model_served(self, trained, tmp_path):
        model = self.copy_of(trained, tmp_path / "model")
        with serving(model) as running:
            newest = support.newest(model)
            shutil.copytree(newest, model / "99999999")
            (model / "99999999" / "model.safetensors").write_bytes(b"nothing")
            (model / "latest.new").write_text("99999999\n")
            (model / "latest.new").rename(model / "latest")
            support.wait_for(lambda: any("99999999" in line for line in running.stderr), "a note")
            assert running.get("/api/nearest", word="aaax")["neighbours"]

    def test_health_tells_of_trouble_until_all_is_well_again(self, trained, tmp_path):
        model = self.copy_of(trained, tmp_path / "model")

        def point_to(step):
            (model / "latest.new").write_text(f"{step}\n")
            (model / "latest.new").rename(model / "latest")

        with serving(model) as running:
            def trouble():
                health = running.get("/api/health")
                assert health["status"] == "ok" and health["model"]
                return health["trouble"]

            assert trouble() is None
            newest = support.newest(model)
            shutil.copytree(newest, model / "99999999")
            (model / "99999999" / "model.safetensors").write_bytes(b"nothing")
            point_to(99999999)
            support.wait_for(lambda: "went back to the checkpoint" in (trouble() or ""), "trouble with a damaged checkpoint")
            shutil.rmtree(model / "99999999")
            point_to(newest.name)
            support.wait_for(lambda: trouble() is None, "its end")
            model.rename(tmp_path / "elsewhere")
            support.wait_for(lambda: "holds no model" in (trouble() or ""), "trouble with a directory that is gone")
            assert running.get("/api/nearest", word="aaax")["neighbours"]
            (tmp_path / "elsewhere").rename(model)
            support.wait_for(lambda: trouble() is None, "its end")

    def test_figures_and_alerts_of_before_are_told_after_a_restart(self, trained, tmp_path):
        """Of a file of several megabytes, with the file before it, by `serve` and by `train` that goes on."""
        model = self.copy_of(trained, tmp_path / "model")

        def line(step, *words):
            return json.dumps({"time": step, "step": step, "tokens": step, "drift": {"alerts": len(words), "words": words},
                               "filler": "x" * 2000}) + "\n"
        (model / "metrics.jsonl.1").write_text(line(1) + line(2, "first"))
        (model / "metrics.jsonl").write_text("".join(line(step, "first", "second") for step in range(3, 4000)))

        def check(running):
            told = running.get("/api/progress", points=2000)
            assert [(alert["step"], alert["words"]) for alert in told["alerts"]] == [(2, ["first"]), (3, ["second"])]
            steps = [metrics["step"] for metrics in told["metrics"]]
            assert len(steps) >= 1000 and steps[0] < 50 and steps[-1] == 3999 and steps == sorted(steps)
        with serving(model) as running:
            check(running)
            events = Events(running, "metrics", "alert")
            assert events.await_one("metrics")["step"] == 3999 and events.await_one("alert")["words"] == ["second"]
            with open(model / "metrics.jsonl", "a") as more:
                more.write(line(4000, "second", "third"))
            assert events.await_one("metrics", lambda data: data["step"] == 4000)
            assert events.await_one("alert", lambda data: data["step"] == 4000)["words"] == ["third"]
            assert len(events.of("metrics")) == 2
            events.close()
        (model / "metrics.jsonl").write_text("".join(line(step, "first", "second") for step in range(3, 4000)))
        text = tmp_path / "more.txt"
        text.write_text(support.topical_text(1_000, seed=8))
        with serving(text, "--out", model, "--threads", 1, "--keep", command="train") as running:
            check(running)


class TestWhileTraining:
    def test_a_stream_is_served_as_it_learns(self, tmp_path):
        feed = tmp_path / "feed.txt"
        feed.write_text(support.topical_text(30_000))
        with serving(f"tail:{feed}?from=start", "--out", tmp_path / "model", "--dim", 16, "--min-count", 1, "--threads", 1,
                     "--evaluate-every", 0.5, "--snapshot-every", 20_000, command="train") as running:
            events = Events(running)
            progress = events.await_one("progress", lambda data: data["tokens"] >= 20_000)
            assert progress["sources"][0]["documents"] > 0 and progress["documents"] > 0
            assert progress["loss"] > 0 and progress["dim"] == 16 and progress["cluster"] is None

            def has_pip_or_gets_text(data):  # a probe counts what comes after its words were chosen
                if data["pip"] is None:
                    with open(feed, "a") as more:
                        more.write(support.topical_text(10_000, seed=3))
                return data["pip"] is not None

            metrics = events.await_one("metrics", has_pip_or_gets_text)
            assert 0 < metrics["pip"]["relative"] < 2
            events.await_one("model", lambda data: data["words"] >= 100)
            assert len(running.get("/api/nearest", word="aaax", k=3)["neighbours"]) == 3
            number = running.get("/api/model")["number"]
            with open(feed, "a") as more:
                more.write(support.topical_text(30_000, seed=2))
            events.await_one("model", lambda data: data["number"] > number)
            told = running.get("/api/progress")
            assert told["service"] == "train" and told["progress"] and told["metrics"]
            support.wait_for(lambda: len(running.get("/api/neighbourhood", word="aaax")["path"]) >= 2, "a second moment")
            assert running.metric("streamvec_tokens_total") >= 30_000
            events.close()
            assert running.stop() == 0

    @support.needs("gRPC")
    def test_a_cluster_tells_how_every_node_fares(self, text, tmp_path):
        with serving("-n", 2, "--servers", 1, "--", "train", text, "--out", tmp_path / "model", "--dim", 16, "--epochs", 1_000_000,
                     "--threads", 1, "--sync-words", 1000, command="launch") as running:
            try:
                events = Events(running, "progress")
                fares = lambda node: node["clock"] and node["bytes_sent"] > 1000 < node["bytes_received"]
                all_fare = lambda data: all(map(fares, data["cluster"]["nodes"][:2]))
                told = events.await_one("progress", all_fare)["cluster"]
                leader, worker, owner = told["nodes"]
                assert [node["role"] for node in told["nodes"]] == ["worker", "worker", "server"] and leader["leader"]
                for node in (leader, worker):
                    assert node["clock"] > 0 and node["staleness"] >= 0, node
                assert owner["clock"] is None and owner["staleness"] is None
                assert leader["bytes_sent"] == told["bytes_sent"] != worker["bytes_sent"]
                owners = lambda data: data["cluster"]["nodes"][2]["bytes_received"] or 0
                assert events.await_one("progress", lambda data: owners(data) > 1000)
                events.close()
            finally:
                assert running.stop() == 0

    def test_files_are_served_and_kept_when_asked(self, text, tmp_path):
        with serving(text, "--out", tmp_path / "model", "--dim", 16, "--epochs", 3, "--threads", 1, "--min-count", 1, "--keep",
                     command="train") as running:
            events = Events(running, "end", "model")
            assert events.await_one("end")["why"] == "finished"
            events.await_one("model")
            total = running.get("/api/progress")["progress"][-1]
            assert total["fraction"] == running.metric("streamvec_progress_ratio") == 1
            assert total["tokens"] == running.metric("streamvec_tokens_total") == 3 * len(text.read_text().split())
            assert Events(running, "progress").await_one("progress") == total
            assert len(running.get("/api/nearest", word="aaax", k=3)["neighbours"]) == 3
            card = running.get("/api/model")
            assert card["service"] == "train" and card["options"]["epochs"] == 3
            events.close()
            assert running.stop() == 0

    def test_a_service_that_cannot_listen_ends_before_training(self, text, tmp_path, trained):
        with serving(trained) as other:
            done = support.run("train", text, "--out", tmp_path / "model", "--listen", f"127.0.0.1:{other.port}", exit=1)
            assert "in use" in done.err and not (tmp_path / "model" / "latest").exists()
        assert "--listen" in support.run("train", text, "--out", tmp_path / "model", "--keep", exit=2).err
