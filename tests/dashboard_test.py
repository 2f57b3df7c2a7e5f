"""The dashboard in a real browser, against a running `train` (web/tests/browser.mjs) and against a service that says what
a test wants (web/tests/page.mjs); its unit tests and types. The browser is Debian's chromium, driven by playwright-core."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest
import stream_support
import support
from serve_support import serving

WEB = pathlib.Path(__file__).resolve().parent.parent / "web"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# What a stream needs to see a planted change of meaning within seconds. It has no end, so that it still learns however
# late the browser comes.
# The change comes late, so that there are snapshots of a model that knows something before it, on a busy machine, too.
NEWSROOM = ["newsroom:?articles=12000&change=6000&rate=300&endless=1", "--dim", 48, "--replay-ratio", 1, "--replay-chunks", 1000,
            "--snapshot-every", 100_000, "--evaluate-every", 1]


def needs(condition, what):
    if not condition:
        pytest.skip(f"the dashboard is not tested here: {what}")


def needs_packages():
    needs(shutil.which("node"), "Node.js is not here")
    needs((WEB / "node_modules/.fetched").exists(), "npm could not fetch its packages")


def node(*args, patience_s=240, **options):
    done = subprocess.run(["node", *map(str, args)], cwd=WEB, capture_output=True, text=True, timeout=patience_s, **options)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    return done.stdout


def drive(scenario, service, **more):
    """Runs one scenario of browser.mjs; an error there is an error here."""
    needs_packages()
    needs(CHROMIUM, "chromium is not here")
    needs(service.ask("GET", "/app.js")[0] == 200, "the program was built without it")
    return drive_script("browser.mjs", scenario, url=service.url, **more)


def drive_script(script, *scenario, **more):
    given = {"chromium": CHROMIUM, "root": os.geteuid() == 0, "patience_ms": support.TIMEOUT_S * 4000, **more}
    return json.loads(node(f"tests/{script}", *scenario, input=json.dumps(given), patience_s=8 * support.TIMEOUT_S))


class TestSources:
    def test_its_unit_tests_pass(self, tmp_path):
        needs_packages()
        node("build.mjs", "--tests", tmp_path)
        node("--test", *sorted(tmp_path.glob("*.test.mjs")))

    def test_its_types_hold(self):
        needs_packages()
        node("node_modules/typescript/lib/tsc.js", "--noEmit")

    def test_the_lock_names_no_host(self):
        lock = json.loads((WEB / "package-lock.json").read_text())
        for name, package in lock["packages"].items():
            assert "resolved" not in package, name
            assert not name or package["integrity"].startswith("sha512-"), name
        wanted = json.loads((WEB / "package.json").read_text())
        for versions in (wanted["dependencies"], wanted["devDependencies"]):
            assert all(version[0].isdigit() for version in versions.values()), versions


class TestLive:
    def test_a_run_on_the_newsroom_is_seen_as_it_learns(self, tmp_path):
        """Numbers move, the map draws and moves, a click shows neighbours, a drift alert appears, and all without a
        report of the policy or an error. The same on a plain canvas and on a phone."""
        with serving(*NEWSROOM, "--out", tmp_path / "model", command="train") as running:
            seen = drive("live", running)
            assert seen["renderers"] == ["WebGL", "2-D canvas"]
            assert running.stop() == 0


@support.needs("gRPC")
class TestCluster:
    def test_every_nodes_clock_staleness_and_traffic_are_shown(self, text, tmp_path):
        with serving("-n", 2, "--", "train", text, "--out", tmp_path / "model", "--dim", 16, "--epochs", 1_000_000, "--threads", 1,
                     "--sync-words", 1000, command="launch") as running:
            try:
                drive("cluster", running)
            finally:
                assert running.stop() == 0


class TestBreaks:
    def test_it_says_that_the_stream_broke_and_comes_back_by_itself(self, trained):
        [port] = support.free_ports(1)
        listen = f"127.0.0.1:{port}"
        with serving(trained, "--listen", listen) as running:
            needs_packages()
            needs(CHROMIUM, "chromium is not here")
            needs(running.ask("GET", "/app.js")[0] == 200, "the program was built without it")
            given = {"url": running.url, "chromium": CHROMIUM, "root": os.geteuid() == 0, "patience_ms": support.TIMEOUT_S * 2000}
            browser = subprocess.Popen(["node", "tests/browser.mjs", "breaks"], cwd=WEB, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            try:
                browser.stdin.write(json.dumps(given) + "\n")
                browser.stdin.flush()
                assert browser.stdout.readline() == "open\n", browser.stderr.read()
                running.process.kill()
                running.process.wait()
                assert browser.stdout.readline() == "broken\n", browser.stderr.read()
                with serving(trained, "--listen", listen):
                    out, err = browser.communicate(timeout=2 * support.TIMEOUT_S)
                    assert browser.returncode == 0, out + err
            finally:
                browser.kill()
                browser.wait()

    def test_it_asks_for_the_token_of_a_service_that_wants_one(self, trained):
        with serving(trained, env={**os.environ, "STREAMVEC_TOKEN": "0123456789abcdef-right"}) as running:
            drive("login", running, wrong="0123456789abcdef-wrong", token="0123456789abcdef-right")


class TestPage:
    @pytest.fixture(scope="class")
    def wrong(self, tmp_path_factory):
        """What page.mjs found wrong in each of its scenarios, with services that say what a scenario wants."""
        needs_packages()
        needs(CHROMIUM, "chromium is not here")
        pages = tmp_path_factory.mktemp("pages")
        node("build.mjs", pages)
        return drive_script("page.mjs", pages=str(pages))

    def test_a_run_that_failed_is_said_to_have_failed_with_its_whole_reason(self, wrong):
        assert wrong["failed"] is None, wrong["failed"]

    def test_a_page_that_nobody_sees_holds_no_connection_and_catches_up_when_seen(self, wrong):
        assert wrong["hidden"] is None, wrong["hidden"]

    def test_a_service_that_has_fallen_silent_is_noticed(self, wrong):
        assert wrong["silent"] is None, wrong["silent"]

    def test_a_word_that_is_asked_for_is_shown_as_such_and_not_for_ever(self, wrong):
        assert wrong["asking"] is None, wrong["asking"]

    def test_what_another_service_said_is_not_kept(self, wrong):
        assert wrong["restarted"] is None, wrong["restarted"]

    def test_a_call_that_is_refused_asks_for_the_token(self, wrong):
        assert wrong["locked"] is None, wrong["locked"]

    def test_the_token_is_asked_for_however_often_esc_is_pressed(self, wrong):
        assert wrong["escape"] is None, wrong["escape"]
    def test_a_run_that_is_only_served_has_its_last_figures_and_when_they_were_measured(self, wrong):
        assert wrong["served"] is None, wrong["served"]

    def test_a_run_over_files_says_how_its_quality_is_measured(self, wrong):
        assert wrong["files"] is None, wrong["files"]

    def test_the_trouble_of_a_source_is_shown_whole(self, wrong):
        assert wrong["trouble"] is None, wrong["trouble"]

    def test_text_selected_in_a_table_stays_selected(self, wrong):
        assert wrong["selection"] is None, wrong["selection"]
    def test_a_neighbour_chosen_by_keys_has_the_focus(self, wrong):
        assert wrong["focus_on_choice"] is None, wrong["focus_on_choice"]

    def test_the_focus_stays_in_the_list_when_another_model_comes(self, wrong):
        assert wrong["focus_on_model"] is None, wrong["focus_on_model"]

    def test_a_chosen_word_is_read_out_once_and_not_with_every_model(self, wrong):
        assert wrong["read_out"] is None, wrong["read_out"]

    def test_the_field_has_the_suggestion_that_was_chosen(self, wrong):
        assert wrong["suggestion"] is None, wrong["suggestion"]

    def test_the_buttons_of_the_map_may_be_clicked_twice(self, wrong):
        assert wrong["map_buttons"] is None, wrong["map_buttons"]

    def test_a_model_of_too_few_words_for_a_map_says_so(self, wrong):
        assert wrong["few_words"] is None, wrong["few_words"]


def hostile_words():
    """200 words that would like to be markup, script, style, addresses, or to turn the page around."""
    shapes = [
        "<script>window.pwned({n})</script>", "<img/src=x/onerror=window.pwned({n})>", "<svg/onload=window.pwned({n})>",
        "\"onmouseover=\"window.pwned({n})", "'onfocus='window.pwned({n})'autofocus='", "javascript:window.pwned({n})",
        "</table><script>window.pwned({n})</script>", "<iframe/srcdoc='<script>parent.pwned({n})</script>'>", "<a/href=//evil{n}.example>x</a>",
        "<style>*{{display:none}}</style>{n}", "{{{{constructor.constructor('window.pwned({n})')()}}}}", "${{window.pwned({n})}}",
        "\u2067gnp.exe{n}\u2069", "\u2067abc{n}\u2066", "a\u200db\u200dc{n}", "z{n}a\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301",
        "\u2068<b>{n}</b>\u2066", "%3Cscript%3Epwned({n})%3C/script%3E", "&lt;script&gt;pwned({n})&lt;/script&gt;", "]]>--><script>pwned({n})</script>",
    ]
    words = [shape.format(n=n) for n in range(10) for shape in shapes]
    words[-1] = "__proto__"
    words[-2] = "constructor"
    return words


class TestHostileWords:
    def test_two_hundred_hostile_words_are_shown_as_text(self, tmp_path):
        site = stream_support.Site()
        try:
            words = hostile_words()
            assert len(set(words)) == 200
            plain = [f"plain{n}" for n in range(60)] * 3  # the map leaves out the most frequent words: these
            for n in range(30):
                turned = plain + words[n * 6:] + words[:n * 6]
                site.add(" ".join(word.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for word in turned))
            with serving(f"http://{site.authority}/feed.xml", "--allow-private", "127.0.0.1", "--out", tmp_path / "model", "--dim", 16,
                         "--min-count", 1, "--tokenizer", "whitespace", "--keep-case", "--no-nfkc", "--evaluate-every", 1, "--fetch-delay", 0,
                         command="train") as running:
                support.wait_for(lambda: running.ask("GET", "/api/map")[0] == 200, "the map")
                known = {row["word"] for row in running.get("/api/words", prefix="", limit=1000)["words"]}
                assert set(words) <= known, sorted(set(words) - known)
                drive("hostile", running, words=words)
                assert running.stop() == 0
        finally:
            site.close()
