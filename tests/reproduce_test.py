"""The experiment of 2018 from outside: a quick run of all rows, its page and its JSON, misuse and stopping."""
import html.parser
import json
import os
import re
import signal
import xml.etree.ElementTree

import pytest
import support

pytestmark = support.needs("gRPC")

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Checker(html.parser.HTMLParser):
    """Demands that every element is closed in its turn, and keeps what the page holds."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> where {self.open[-3:]} are open"
        self.open.pop()

    def handle_data(self, data):
        self.text.append(data)


def check_page(path):
    checker = Checker()
    checker.feed(path.read_text())
    checker.close()
    assert checker.open == []
    return checker


def plots_of(path):
    """The page's <svg> elements, parsed as XML."""
    return [xml.etree.ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", path.read_text(), re.DOTALL)]


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """One run for all tests of what it writes. The corpus has a name that a page must not obey."""
    here = tmp_path_factory.mktemp("reproduce")
    corpus = here / "novels <b>&amp;"
    corpus.mkdir()
    for number in range(2):
        (corpus / f"{number}.txt").write_text(support.topical_text(12_000, seed=number))
    words = support.words_of_topic(0)
    (here / "set.tsv").write_text(f"{words[0]}\t{words[1]}\t9\n{words[0]}\t{support.words_of_topic(1)[0]}\t1\n"
                                  f"{words[2]}\t{words[3]}\t8\n")
    done = support.run("reproduce", "--corpus", corpus, "--out", here / "report.html", "--quick", "--as-published", "-n", 2,
                       "--similarity", here / "set.tsv", "--json", exit=0)
    done.page = here / "report.html"
    done.json = json.loads(done.out)
    return done


class TestQuick:
    def test_every_setting_was_run_soundly_and_as_published(self, quick):
        names = {row["name"] for row in quick.json["rows"]}
        for arm in ["sound", "published"]:
            for setting in ["one", "several", "sync", "async"]:
                assert f"{arm}-sgns-50-1024-{setting}" in names
            assert f"{arm}-rbsg-50-1024-one" in names
        assert all(row["failure"] is None for row in quick.json["rows"])

    def test_rows_have_their_figures(self, quick):
        for row in quick.json["rows"]:
            assert row["pairs_per_s"] > 0 and row["seconds_per_epoch"] > 0, row
            assert row["pip"]["relative"] > 0 and row["loss"] > 0, row
            assert row["similarity"][0]["covered"] == 3, row
            assert (row["wire_bytes_per_pair"] > 0) == ("cluster" in row["setting"]), row
            assert row["command"].startswith("streamvec "), row

    def test_as_published_is_still_the_noise_it_began_with(self, quick):
        zero = quick.json["references"]["50"]["zero"]["mean_square"]
        published = [row for row in quick.json["rows"] if row["name"].startswith("published-sgns")]
        sound = [row for row in quick.json["rows"] if row["name"].startswith("sound-sgns")]
        assert all(row["pip"]["best_mean_square"] > 5 * zero for row in published)
        assert min(row["loss"] for row in published) > 2 * max(row["loss"] for row in sound)

    def test_the_page_is_well_formed_and_needs_nothing_else(self, quick):
        checker = check_page(quick.page)
        assert "script" not in checker.tags and "link" not in checker.tags and "b" not in checker.tags
        assert not [each for each in checker.attributes if each[1] in ("src", "href") or each[1].startswith("on")]
        text = "".join(checker.text)
        assert "novels <b>&amp;" in text
        assert "21.6" in text and "155,049" in text  # of 2018

    def test_the_page_has_the_rows_of_the_json(self, quick):
        text = "".join(check_page(quick.page).text)
        for row in quick.json["rows"]:
            assert f"# {row['name']}\n{row['command']}\n" in text

    def test_the_plots_are_drawn(self, quick):
        plots = plots_of(quick.page)
        names = [plot.find("{*}title").text for plot in plots]
        for part in ["Time of an epoch", "Speed", "Relative PIP", "similarity", "Bytes"]:
            assert any(part in name for name in names), names
        for plot in plots:
            assert plot.findall(".//{*}rect") or plot.findall(".//{*}polyline")
            for number in re.findall(r'"([^"]*)"', xml.etree.ElementTree.tostring(plot).decode()):
                assert "nan" not in number and "inf" not in number

    def test_machine_and_commit_are_named(self, quick):
        facts = quick.json["facts"]
        assert "cores" in facts["machine"] and re.search(r"commit \S+", facts["program"])
        assert any("GPUs" in line and "--device cuda" in line for line in quick.json["not_run"])


def test_a_row_can_be_run_alone(tmp_path):
    (tmp_path / "text.txt").write_text(support.topical_text(5_000))
    done = support.run("reproduce", "--corpus", "text.txt", "--out", "r.html", "--quick", "--only", "sound-sgns-50-own-one",
                       "--json", cwd=tmp_path, exit=0)
    assert [row["name"] for row in json.loads(done.out)["rows"]] == ["sound-sgns-50-own-one"]
    check_page(tmp_path / "r.html")


class TestMisuse:
    def test_a_row_that_is_not_there_is_named(self, tmp_path):
        (tmp_path / "text.txt").write_text(support.topical_text(1_000))
        done = support.run("reproduce", "--corpus", "text.txt", "--out", "r.html", "--only", "nothing", cwd=tmp_path, exit=2)
        support.assert_one_line(done.err)
        assert "nothing" in done.err and not (tmp_path / "r.html").exists()

    def test_no_corpus_is_named(self, tmp_path):
        done = support.run("reproduce", "--corpus", "missing", "--out", "r.html", "--quick", cwd=tmp_path, exit=1)
        support.assert_one_line(done.err)
        assert "missing" in done.err

    def test_without_out_it_is_misuse(self):
        assert "--out" in support.run("reproduce", "--corpus", "x", exit=2).err

    def test_a_report_that_cannot_be_written_fails_before_anything_is_trained(self, tmp_path):
        (tmp_path / "text.txt").write_text(support.topical_text(1_000))
        done = support.run("reproduce", "--corpus", "text.txt", "--out", "no/such/r.html", "--quick", cwd=tmp_path, exit=1)
        support.assert_one_line(done.err)
        assert "no/such" in done.err


@pytest.mark.parametrize("row", ["sound-sgns-50-own-one", "published-sgns-50-1024-one"])
def test_a_wish_to_stop_leaves_what_was_measured_of_a_row(tmp_path, row):
    (tmp_path / "text.txt").write_text(support.topical_text(20_000))
    process = support.start("reproduce", "--corpus", "text.txt", "--out", "r.html", "--epochs", 100_000, "--as-published",
                            "--only", row, "--json", cwd=tmp_path)
    page = tmp_path / "r.html"
    support.wait_for(lambda: page.exists() and f"# {row}\n" in page.read_text() or process.poll() is not None, "the row")
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=support.TIMEOUT_S)
    assert process.returncode == 0
    [done] = json.loads(out)["rows"]
    assert done["name"] == row
    assert done["stopped"] and 1 <= done["epochs"] < 100_000 and done["pairs_per_s"] > 0
    text = "".join(check_page(page).text)
    assert f"# {row}\n" in text and "stopped" in text


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_pinned_nodes_have_cores_of_their_own(tmp_path):
    (tmp_path / "text.txt").write_text(support.topical_text(20_000))
    process = support.start("launch", "-n", 2, "--pin", "--", "train", "text.txt", "--out", "model", "--dim", 8, "--epochs",
                            1_000_000, "--threads", 1, cwd=tmp_path)
    try:
        cores = lambda: [os.sched_getaffinity(child) for child in support.children_of(process.pid)]
        support.wait_for(lambda: len(cores()) == 2 and not set.intersection(*cores()) or process.poll() is not None,
                         "two nodes on cores of their own")
        first, second = cores()
        assert first and second and not first & second
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=support.TIMEOUT_S)
