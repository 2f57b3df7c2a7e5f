"""streamvec simulate: costs fitted on real runs, larger clusters under virtual clocks."""
import json
import signal

import pytest
import support

pytestmark = support.needs("gRPC")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("simulate") / "corpus.txt"
    path.write_text(support.topical_text(60_000))
    return path


def test_predicts_every_size_and_network_from_costs_fitted_here(corpus):
    done = support.run("simulate", corpus, "--dim", 16, "--sync-words", 1000, "--nodes", "2,8", "--bandwidth", "1Mbit,10Gbit",
                       "--json", exit=0)
    report = json.loads(done.out)
    assert report["costs"]["word_ns"] > 0 and report["costs"]["row_ns"] > 0
    for stage, nodes in [("fitted", 2), ("checked", 4)]:
        figures = report[stage]
        assert figures["nodes"] == nodes
        assert figures["error"] == pytest.approx(figures["predicted_s"] / figures["measured_s"] - 1, abs=1e-3)
    assert len(report["checked"]["runs_s"]) == 3 and min(report["checked"]["runs_s"]) == report["checked"]["measured_s"]
    rows = {(row["nodes"], row["bandwidth"]): row for row in report["predicted"]}
    assert set(rows) == {(nodes, bandwidth) for nodes in [2, 8] for bandwidth in ["1Mbit", "10Gbit"]}
    for row in rows.values():
        assert row["seconds"] > 0 and row["bytes_per_pair"] > 0 and row["loss"] > 0
        assert row["behind"] == pytest.approx(row["loss"] - report["one_node"]["loss"], abs=2e-3)
        assert row["one_node_quality"] == (row["behind"] <= 0.01)
    # What is computed, not measured: a wire of 125 KB/s makes everything wait for it.
    assert rows[8, "10Gbit"]["seconds"] < rows[8, "1Mbit"]["seconds"]


def test_more_epochs_are_computed_from_costs_of_one(corpus):
    options = ["simulate", corpus, "--dim", 8, "--nodes", 2, "--bandwidth", "1Gbit", "--sync", "auto", "--json"]
    once, thrice = [json.loads(support.run(*options, "--epochs", epochs, exit=0).out)["predicted"][0] for epochs in [1, 3]]
    assert thrice["loss"] < once["loss"] and thrice["pushes"] > once["pushes"]


def test_one_node_is_told_by_the_same_measure_and_who_ends_behind_it_is_marked(corpus):
    # 64 nodes that say next to nothing to each other learn little of so short a text; one in a cluster is one alone.
    options = ["simulate", corpus, "--dim", 8, "--nodes", "1,64", "--bandwidth", "1Gbit", "--epochs", 2, "--sync-words", 100_000]
    report = json.loads(support.run(*options, "--json", exit=0).out)
    one, many = report["predicted"]
    assert one["loss"] == report["one_node"]["loss"] and one["behind"] == 0 and one["one_node_quality"] is True
    assert many["behind"] > 0.01 and many["one_node_quality"] is False
    lines = support.run(*options, exit=0).out.splitlines()
    alone, one, many = [line for line in lines if line.split()[:1] in (["1"], ["64"])]
    assert float(alone.split()[-1]) == pytest.approx(report["one_node"]["loss"], abs=2e-4) and one.split()[-1] == "+0.0000"
    assert many.endswith("not at one node's quality")


def test_needs_no_text_of_its_own():
    done = support.run("simulate", "--dim", 8, "--window", 1, "--negatives", 1, "--nodes", 4, "--bandwidth", "1Gbit", "--json", exit=0,
                       timeout=240)
    report = json.loads(done.out)
    assert report["checked"]["nodes"] == 4 and report["predicted"][0]["seconds"] > 0


@pytest.mark.parametrize("wish", [signal.SIGINT, signal.SIGTERM])
def test_told_to_stop_it_leaves_with_0_and_speaks_of_no_model(wish, corpus):
    process = support.start("simulate", corpus, "--epochs", 1000, "--json")
    support.await_handlers(process)
    process.send_signal(wish)
    out, err = process.communicate(timeout=support.TIMEOUT_S)
    assert process.returncode == 0 and out == b"" and b"stopping\n" in err and b"saved" not in err, err


@pytest.mark.parametrize("options, words", [(["--nodes", "4,x"], "'x'"), (["--bandwidth", "fast"], "'fast'"),
                                            (["--bandwidth", "infGbit"], "'infGbit'"),
                                            (["--sync", "ring"], "owners of rows are simulated")])
def test_what_cannot_be_simulated_is_named(options, words, corpus):
    done = support.run("simulate", corpus, *options, exit=2)
    assert words in done.err
