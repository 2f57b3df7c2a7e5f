"""Word vectors from text that never stops.

    import streamvec
    streamvec.train("corpus.txt", out="model", dim=100, epochs=3)
    v = streamvec.load("model")
    v.most_similar("king", topn=5)

docs/PYTHON.md is a tutorial. Names are those of the C++ library; most are the command line's with _ for -.
"""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Callable, Iterable, List, Optional, Sequence, Tuple, Union

from . import _native
from ._native import Document, Error, ResourceError, TrainProgress, WordVectors, __version__

if TYPE_CHECKING:
    from gensim.models import KeyedVectors  # type: ignore[import]  # has no types

__all__ = ["Document", "Error", "ResourceError", "TrainProgress", "WordVectors", "from_gensim", "import_vectors", "load",
           "to_gensim", "train", "__version__"]

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Documents = Iterable[Union[str, bytes, List[str], Tuple[str, ...], Document]]


def train(
    sources: Union[Path, Sequence[Path], None] = None,
    *,
    out: Path,
    documents: Optional[Documents] = None,
    progress: Optional[Callable[[TrainProgress], object]] = None,
    counting: Optional[Callable[[int, float], object]] = None,
    model: Optional[str] = None,
    dim: Optional[int] = None,
    window: Optional[int] = None,
    negatives: Optional[int] = None,
    sample: Optional[float] = None,
    pace: Optional[float] = None,
    min_count: Optional[int] = None,
    epochs: Optional[int] = None,
    threads: Optional[int] = None,
    lr: Optional[float] = None,
    schedule: Optional[str] = None,
    optimizer: Optional[str] = None,
    kernel: Optional[str] = None,
    device: Optional[str] = None,
    table: Optional[str] = None,
    products: Optional[str] = None,
    batch: Optional[int] = None,
    vocab_max: Optional[int] = None,
    minn: Optional[int] = None,
    maxn: Optional[int] = None,
    bucket: Optional[int] = None,
    jamo: Optional[bool] = None,
    x_max: Optional[float] = None,
    alpha: Optional[float] = None,
    memory_mb: Optional[int] = None,
    hidden: Optional[int] = None,
    character_dim: Optional[int] = None,
    cell: Optional[str] = None,
    seed: Optional[int] = None,
    checkpoint_every_s: Optional[float] = None,
    tokenizer: Optional[str] = None,
    fold_case: Optional[bool] = None,
    nfkc: Optional[bool] = None,
    stop_words: Optional[Sequence[Path]] = None,
    stem: Optional[str] = None,
    lemmas: Optional[Path] = None,
    stream: Optional[bool] = None,
    half_life: Union[str, int, None] = None,
    replay: Optional[str] = None,
    replay_ratio: Optional[float] = None,
    replay_chunks: Optional[int] = None,
    drop_duplicates: Optional[bool] = None,
    languages: Optional[Sequence[str]] = None,
    evaluate_every_s: Optional[float] = None,
    snapshot_every: Optional[int] = None,
    drift: Optional[bool] = None,
    similarity: Optional[Sequence[Path]] = None,
    analogy: Optional[Sequence[Path]] = None,
) -> TrainProgress:
    """Learns vectors into the model directory `out`, and goes on with the model that it holds, if any.

    sources    what the command line takes: a file, a directory, a web address, nats://..., or several of them
    documents  or documents at hand: an iterable of str, of lists of words, or of Document. A list, or any object that
               makes a new iterator each time, is counted first and may have several epochs; an iterator is read once.
    progress   called about twice a second with a TrainProgress, on this thread
    counting   likewise with (tokens, fraction) while the vocabulary is counted

    Everything else is an option of `streamvec train` (`streamvec help train` explains each; docs/PYTHON.md has those that
    are named otherwise there); None leaves the default.
    half_life, replay, replay_ratio and stream make a stream of what is given, as sources without end always are.

    Ctrl-C saves, then raises KeyboardInterrupt; the same call goes on where it was. When all is trained already it only
    returns. An exception in `documents` or a callback does the same; of an iterator, all documents before it are trained
    on. Other threads run meanwhile. Raises ValueError for options out of range, FileNotFoundError and other
    OSErrors for sources, streamvec.Error when `out` holds another kind of model.
    """
    given = locals()
    options = {name: given[name] for name in _native.option_names if given[name] is not None}
    if (sources is None) == (documents is None):
        raise TypeError("train() takes either sources or documents")
    if documents is not None:
        if isinstance(documents, (str, bytes, os.PathLike)):
            raise TypeError("documents are an iterable of texts; a file is given as train(path, out=...)")
        return _native.train_documents(documents, out, options, progress, counting)
    assert sources is not None
    names = [sources] if isinstance(sources, (str, bytes, os.PathLike)) else sources
    return _native.train(list(names), out, options, progress, counting)


def load(directory: Path) -> WordVectors:
    """The newest sound checkpoint of a model directory. FileNotFoundError when it holds no model."""
    return WordVectors.load(directory)


def import_vectors(path: Path) -> WordVectors:
    """Vectors that another program wrote: word2vec, GloVe, fastText, npy, safetensors, projector."""
    return WordVectors.import_vectors(path)


def to_gensim(vectors: WordVectors) -> KeyedVectors:
    """A copy as gensim's KeyedVectors, with counts. Words never seen have no vectors there."""
    from gensim.models import KeyedVectors

    made = KeyedVectors(vector_size=vectors.vector_size)
    made.add_vectors(list(vectors.index_to_key), vectors.vectors)
    made.expandos["count"] = vectors.counts.copy()  # gensim 4.2 fails when add_vectors() is given them
    return made


def from_gensim(vectors: KeyedVectors) -> WordVectors:
    """A copy of gensim's KeyedVectors (model.wv), with counts where it has them."""
    counts = vectors.expandos.get("count")
    return WordVectors.from_vectors(vectors.index_to_key, vectors.vectors, None if counts is None else counts.tolist())
