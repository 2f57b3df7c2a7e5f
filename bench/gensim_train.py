"""One training with gensim in a process of its own, so that it can be pinned; see peers.py.

Takes one argument, a JSON object, and prints another. The text goes in by gensim's fastest way, corpus_file; the time
is that of train() alone, without the vocabulary.
"""
import json
import sys
import time

import gensim
from gensim.models import word2vec


def main():
    job = json.loads(sys.argv[1])
    if word2vec.FAST_VERSION < 0 or word2vec.CORPUSFILE_VERSION < 0:
        sys.exit("this gensim has no compiled training code, and comparing with it would be unfair")
    settings = job["settings"]
    options = {} if settings["lr"] is None else {"alpha": settings["lr"]}
    model = word2vec.Word2Vec(sg=1, hs=0, vector_size=settings["dim"], window=settings["window"],
                              negative=settings["negatives"], sample=settings["sample"],
                              min_count=settings["min_count"], workers=settings["threads"], seed=job["seed"], **options)
    model.build_vocab(corpus_file=job["text"])
    begin = time.monotonic()
    model.train(corpus_file=job["text"], total_words=model.corpus_total_words, epochs=job["epochs"])
    seconds = time.monotonic() - begin
    model.wv.save_word2vec_format(job["vectors"], binary=True)
    json.dump({"seconds": seconds, "vocab": len(model.wv), "version": gensim.__version__}, sys.stdout)


if __name__ == "__main__":
    main()
