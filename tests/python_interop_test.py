"""import streamvec: vectors of gensim, of files and of numbers, both ways."""
import pytest
import support
from python_support import numpy, streamvec

LINES = support.topical_text(20_000).splitlines()
TOPIC = support.words_of_topic(0)


@pytest.fixture(scope="module")
def v(trained):
    return streamvec.load(trained)


class TestOtherPrograms:
    def test_gensim_gets_the_same_vectors_counts_and_neighbours(self, v):
        pytest.importorskip("gensim")
        theirs = streamvec.to_gensim(v)
        assert list(theirs.index_to_key) == list(v) and (theirs.vectors == v.vectors).all()
        assert theirs.get_vecattr(TOPIC[0], "count") == v.counts[v.get_index(TOPIC[0])]
        for word in TOPIC[:5]:
            assert [w for w, _ in theirs.most_similar(word, topn=5)] == [w for w, _ in v.most_similar(word, topn=5)]
            assert v.similarity(word, TOPIC[9]) == pytest.approx(float(theirs.similarity(word, TOPIC[9])), abs=1e-5)
        a, b, c = TOPIC[:3]
        assert theirs.most_similar([b, c], [a], topn=3)[0][0] == v.most_similar([b, c], [a], topn=3)[0][0]
        others = [TOPIC[0], TOPIC[1], support.words_of_topic(1)[0]]
        assert theirs.doesnt_match(others) == v.doesnt_match(others)

    def test_what_gensim_learnt_comes_back_and_can_be_trained_further(self, tmp_path):
        gensim = pytest.importorskip("gensim")
        learnt = gensim.models.Word2Vec([line.split() for line in LINES[:300]], vector_size=12, min_count=1, workers=1, seed=1)
        v = streamvec.from_gensim(learnt.wv)
        assert list(v) == learnt.wv.index_to_key and (v.vectors == learnt.wv.vectors).all()
        assert v.counts.tolist() == [learnt.wv.get_vecattr(word, "count") for word in v]
        v.save(tmp_path / "m")
        streamvec.train(documents=LINES[300:600], out=tmp_path / "m", threads=1, min_count=1)
        assert streamvec.load(tmp_path / "m").vector_size == 12

    def test_files_pass_both_ways(self, v, tmp_path):
        v.export_vectors(tmp_path / "v.bin", "word2vec-bin")
        back = streamvec.import_vectors(tmp_path / "v.bin")
        assert list(back) == list(v) and (back.vectors == v.vectors).all()
        with pytest.raises(ValueError, match="word2vec"):
            v.export_vectors(tmp_path / "v.x", "nonsense")
        back.save(tmp_path / "m")
        assert (streamvec.load(tmp_path / "m").vectors == v.vectors).all()
        with pytest.raises(FileExistsError):
            back.save(tmp_path / "m")

    def test_vectors_at_hand_are_checked(self):
        make = streamvec.WordVectors.from_vectors
        v = make(["x", "caf\udce9"], [[1, 2], [3, 4]], [5, 6])
        assert v["caf\udce9"].tolist() == [3, 4] and v.counts.tolist() == [5, 6] and list(v) == ["x", "caf\udce9"]
        for words, rows, counts in [(["x"], [[1], [2]], None), (["x", "x"], [[1], [2]], None), (["x"], [[numpy.nan]], None),
                                    ([""], [[1]], None), (["x"], [1], None), (["x"], [[1]], [-1]), (["x"], [[1]], [1, 2]),
                                    (["x"], numpy.zeros((1, 0)), None), (["\ud800"], [[1]], None)]:
            with pytest.raises(ValueError) as caught:
                make(words, rows, counts)
            assert caught.value.code == "INVALID_ARGUMENT"

    def test_counts_that_are_all_0_are_none(self):
        make = streamvec.WordVectors.from_vectors
        assert make(["a", "b"], numpy.ones((2, 3)), [0, 0]).counts.tolist() == make(["a", "b"], numpy.ones((2, 3))).counts.tolist()
        assert make(["a", "b"], numpy.ones((2, 3)), [5, 0]).counts.tolist() == [5, 0]

    def test_counts_may_be_whole_numbers_of_any_kind(self):
        make = streamvec.WordVectors.from_vectors
        for counts in [[3.0, 4], (numpy.float32(3), numpy.int16(4)), numpy.array([3, 4.0]), numpy.array([3, 4], numpy.uint8)]:
            assert make(["a", "b"], numpy.ones((2, 3)), counts).counts.tolist() == [3, 4]
        assert make(["a"], numpy.ones((1, 3)), [2**53 + 1]).counts.tolist() == [2**53 + 1]
        assert make(["a"], numpy.ones((1, 3)), [2**63 - 1]).counts.tolist() == [2**63 - 1]
        for count in [1.5, float("nan"), float("inf"), 2.0**63, 2**63, 2**64, 10**400]:
            with pytest.raises(ValueError, match='count of "a" is') as caught:
                make(["a"], numpy.ones((1, 3)), [count])
            assert caught.value.code == "INVALID_ARGUMENT"
        for count in ["3", None, [3]]:
            with pytest.raises(TypeError, match="a count is a whole number, not"):
                make(["a"], numpy.ones((1, 3)), [count])

    def test_gensims_counts_may_be_floats(self):
        gensim = pytest.importorskip("gensim")
        theirs = gensim.models.KeyedVectors(vector_size=2)
        theirs.add_vectors(["a", "b"], numpy.ones((2, 2), numpy.float32))
        theirs.expandos["count"] = numpy.array([5.0, 2.0])
        assert streamvec.from_gensim(theirs).counts.tolist() == [5, 2]
        theirs.expandos["count"] = numpy.array([5.5, 2.0])
        with pytest.raises(ValueError, match='count of "a" is 5.5'):
            streamvec.from_gensim(theirs)
