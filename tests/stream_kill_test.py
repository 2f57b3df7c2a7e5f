"""Kill -9 at any moment, over every kind of source: no document is lost, none is counted twice."""
import os
import random
import time

import pytest
from stream_support import (Nats, Producer, Redis, Site, Training, assert_each_counted_once, documents_taken,
                            planted_text, planted_words, wait_for)
from support import SANITIZED

# Models are tiny, so that most of the time goes into what is tested: reading, saving, coming back.
QUICK = ["--min-count", "1", "--dim", "8", "--threads", "1", "--negatives", "2", "--checkpoint-every", "0.05",
         "--evaluate-every", "0", "--snapshot-every", "0"]
LIFE_S = (0.05, 0.5)
PROGRESS_TRIES = 1_000


def killed_again_and_again(folder, args, kills, seed):
    """Lives of random length, each ended by kill -9. Some must have got further than the one before, or nothing was
    shown."""
    draw = random.Random(seed)
    kills = kills // 8 if SANITIZED else kills
    places = set()
    for life in range(kills):
        before = documents_taken(folder / "m")
        training = Training(folder, args)
        # Every other life is at least long enough to save something new, however busy the machine is.
        for _ in range(PROGRESS_TRIES if life % 2 == 0 else 0):
            if documents_taken(folder / "m") != before:
                break
            time.sleep(0.02)
        time.sleep(draw.uniform(*LIFE_S))
        training.assert_running()
        training.kill()
        places.add(documents_taken(folder / "m"))
    assert len(places) > kills // 4, f"{kills} lives saved only {sorted(places)} documents"


def survive(folder, source, producer, kills, options=(), seed=1):
    """Kills readers of `source` while `producer` publishes; the last one reads the rest."""
    model = folder / "m"
    args = [source, "--out", model, *QUICK, *options]
    killed_again_and_again(folder, args, kills, seed)
    count = producer.stop()
    training = Training(folder, args)
    try:
        wait_for(lambda: training.assert_running() or planted_words(model, producer.name) >= count, "all documents")
        training.stop()
    finally:
        training.kill()
    assert_each_counted_once(model, producer.name, count)


class TestNats:
    @pytest.mark.parametrize("retention", ["limits", "workqueue"])
    def test_every_message_is_counted_once(self, tmp_path, retention):
        server = Nats(tmp_path / "js")
        try:
            server.make_stream("news", retention)
            producer = Producer("planted", 200, lambda text: server.add("news", text))
            survive(tmp_path, f"nats://127.0.0.1:{server.port}/news", producer, kills=30)
        finally:
            server.close()


class TestRedis:
    @pytest.mark.parametrize("settings", ["", "?group=readers"])
    def test_every_entry_is_counted_once(self, tmp_path, settings):
        server = Redis()
        try:
            producer = Producer("planted", 200, lambda text: server.add("news", text))
            survive(tmp_path, f"redis://127.0.0.1:{server.port}/news{settings}", producer, kills=30)
        finally:
            server.close()


class RotatedLog:
    """A log file that is renamed after every `lines_max` lines, as logrotate does it."""

    def __init__(self, path, lines_max):
        self.path, self.lines_max = path, lines_max
        self.lines = 0

    def add(self, text):
        if self.lines % self.lines_max == self.lines_max - 1:
            for number in range(self.lines // self.lines_max, 0, -1):
                os.rename(f"{self.path}.{number}", f"{self.path}.{number + 1}")
            os.rename(self.path, f"{self.path}.1")
        with open(self.path, "a") as log:
            log.write(text + "\n")
        self.lines += 1


class TestFiles:
    def test_every_line_of_a_file_that_grows_and_is_rotated_is_counted_once(self, tmp_path):
        log = RotatedLog(tmp_path / "log", lines_max=700)
        survive(tmp_path, f"tail:{tmp_path}/log", Producer("planted", 200, log.add), kills=40)

    def test_every_file_put_into_a_directory_is_counted_once(self, tmp_path):
        (tmp_path / "inbox").mkdir()

        def put(text):
            number = text.split()[0]
            (tmp_path / "inbox" / f".{number}").write_text(text + "\n")
            (tmp_path / "inbox" / f".{number}").rename(tmp_path / "inbox" / f"{number}.txt")

        survive(tmp_path, f"watch:{tmp_path}/inbox", Producer("planted", 100, put), kills=30)

    def test_every_record_of_a_file_is_counted_once(self, tmp_path):
        count = 4_000 if SANITIZED else 40_000
        with open(tmp_path / "records.jsonl", "w") as records:
            for number in range(count):
                records.write('{"title":"%s","body":"%s"}\n' % (planted_text("planted", number), "more of it " * 20))
        # Trained on often, so that it does not end before the last kill.
        args = [f"jsonl:{tmp_path}/records.jsonl?text=/title,/body", "--out", tmp_path / "m", "--stream", *QUICK,
                "--replay-ratio", "100"]
        killed_again_and_again(tmp_path, args, 20, seed=2)
        training = Training(tmp_path, [*args[:-1], "1"])
        assert training.process.wait() == 0, training.said()
        assert_each_counted_once(tmp_path / "m", "planted", count)


class TestHttp:
    def test_every_page_of_a_feed_is_counted_once(self, tmp_path):
        site = Site()
        try:
            producer = Producer("planted", 25, site.add)
            time.sleep(0.2)
            survive(tmp_path, f"http://{site.authority}/feed.xml", producer, kills=40,
                    options=["--allow-private", site.authority, "--fetch-delay", "0.002", "--poll-every", "0.1"])
        finally:
            site.close()
