// The table itself: what the program can be asked to do.
#include <array>

#include "apps/streamvec/options.h"
#include "apps/streamvec/values.h"

namespace streamvec::cli {
namespace {

constexpr double kIntegerMax = 9e15;  // below 2^53: every whole number up to here is a double, too
constexpr double kSlotsMax = 2147483647.0;
constexpr double kSecondsMax = 1e9;

constexpr std::array kCommands = std::to_array<Command>({
    {.name = "demo",
     .synopsis = "[--seconds N] [--listen HOST:PORT]",
     .summary = "learn from a news site the program makes itself, and check what was learned",
     .details =
         "Starts a news site on this machine whose articles have planted word classes, analogies, words that change "
         "their meaning half-way and newly coined words; crawls it and trains while it is written, with a live "
         "progress line; then shows neighbours, how many analogies come out right, which words changed and where the "
         "new words lie. Needs no network and no files, and leaves none. Exits 1 when the planted truth was not found.",
     .examples = "streamvec demo\nstreamvec demo --seconds 10\n"},
    {.name = "train",
     .synopsis = "SOURCE... --out DIR [options]",
     .summary = "learn vectors from text",
     .details =
         "A SOURCE is a file (plain, .gz, .zst, .xz, .bz2), a directory of such files, - for standard input, or what "
         "is read as it comes: a web address (feed, sitemap, page), tail:, watch:, sse+https://, wss://, nats://, "
         "redis://, kafka:// and others (docs/SOURCES.md). What never ends is trained on as a stream.\n"
         "The model goes to DIR. If DIR holds a model already, training continues from it: an interrupted run goes on "
         "where it stopped, and new text adds to what was learned, new words included. --model, --dim and what else "
         "shapes the model are then those of DIR unless given; others than those of DIR are refused.\n"
         "Options that say `of` a model are passed over by the others.\n"
         "Progress goes to standard error. Ctrl-C, SIGTERM or SIGHUP saves and leaves with 0; a second Ctrl-C leaves "
         "at once.",
     .examples = "streamvec train corpus.txt.xz --out model --dim 200 --epochs 3\n"
                 "zcat news.gz | streamvec train - --out model --json\n",
     .words_min = 1,
     .words_max = -1},
    {.name = "eval",
     .synopsis = "DIR [--similarity F]... [--analogy F]... [--pip] [--text F]...",
     .summary = "measure a model",
     .details =
         "Similarity files hold a pair of words and a score a line (tab, space or comma); the figure is Spearman's "
         "rank correlation. Analogy files hold four words a line, sections begin with `: name`; the answer is sought "
         "among the most frequent words only.\n"
         "--text gives the held-out loss, and is the text for --pip; without it --pip reads the sources that the "
         "model was trained on, if they can still be read.",
     .examples = "streamvec eval model --similarity wordsim353.tsv --analogy questions-words.txt\n"
                 "streamvec eval model --pip --text corpus.txt --json\n",
     .words_min = 1,
     .words_max = 1},
    {.name = "nearest",
     .synopsis = "DIR WORD... [-k 10]",
     .summary = "show the words nearest to each WORD",
     .details =
         "By cosine, over all words of the model. A model that makes vectors of spellings (subword, rbsg, hybrid) has "
         "neighbours for any word, and says which ones it has never seen (in JSON: \"seen\": false). Of hybrid the "
         "mean that all vectors have in common is left out. Words that "
         "another model does not know are named on standard error (in JSON: no neighbours) and the exit is 1; the "
         "others are answered all the same.",
     .examples = "streamvec nearest model king queen -k 5\n",
     .words_min = 2,
     .words_max = -1},
    {.name = "analogy",
     .synopsis = "DIR A B C [-k 10]",
     .summary = "find what is to C as B is to A",
     .details =
         "Words nearest to B - A + C (3CosAdd), A, B and C left out. A model that makes vectors of spellings has "
         "them for words never seen, which are named on standard error (in JSON: \"unseen\"); with others the "
         "exit is 1 when one of the three is not known.",
     .examples = "streamvec analogy model man king woman\n",
     .words_min = 4,
     .words_max = 4},
    {.name = "vector",
     .synopsis = "DIR WORD...",
     .summary = "print the vector of each WORD",
     .details =
         "One line each: the word and its values, parted by spaces. Words never seen whose vectors were made of their "
         "spelling are named on standard error (in JSON: \"seen\": false); so are words that the model does not know, "
         "and the exit is 1 then; the others are printed all the same.",
     .examples = "streamvec vector model king queen\n",
     .words_min = 2,
     .words_max = -1},
    {.name = "drift",
     .synopsis = "DIR [WORD...] [--from STEP|TIME] [--to STEP|TIME] [-k 10]",
     .summary = "list words whose meaning moved, with their neighbours then and now",
     .details =
         "Compares two snapshots of the stream in DIR/history, by default the newest and the earliest that had a "
         "quarter of its text. A word's change is how much nearer or farther its neighbours of then and of now have "
         "come. What two models of the stream's halves both saw is no chance: the score says by how many spreads a "
         "word's agreed change exceeds that of words of like frequency. Streams without such halves (--no-drift, "
         "glove, rbsg) are judged by the change alone, which is less sharp. A star marks words that moved beyond "
         "chance (false discoveries at most 5%) and by 3 spreads.\n"
         "A number is a step; a time has a dash (2024-05, 2024-05-01T12:00Z).\n"
         "With WORDs: their count and neighbours at every snapshot, and how near they are to the last one.",
     .examples = "streamvec drift model\nstreamvec drift model --from 2019-01 --to 2024-06 -k 50 --json\n"
                 "streamvec drift model prompt agent\n",
     .words_min = 1,
     .words_max = -1},
    {.name = "export",
     .synopsis = "DIR --format FORMAT OUT",
     .summary = "write the vectors for other programs",
     .details =
         "word2vec and word2vec-bin are what gensim and fastText read; glove is word2vec without the first line. "
         "npy and safetensors write the words to a .vocab.tsv beside OUT; projector makes OUT a directory with the "
         "two TSV files that the TensorBoard projector loads; fasttext-bin is fastText's own model file, with the "
         "n-grams of a subword model (not with --jamo). Files appear whole or not at all.",
     .examples = "streamvec export model --format word2vec-bin vectors.bin\n",
     .words_min = 2,
     .words_max = 2},
    {.name = "import",
     .synopsis = "FILE --out DIR",
     .summary = "make a model of vectors that another program wrote",
     .details =
         "FILE is any format that `export` writes, or a directory of projector files; which one is found out from "
         "its content. `streamvec train` can continue from DIR on new text. A model already in DIR is refused.",
     .examples = "streamvec import vectors.bin --out model\n",
     .words_min = 1,
     .words_max = 1},
    {.name = "source",
     .synopsis = "check URL [--documents 3]",
     .summary = "show what would be read from a web address",
     .details =
         "Says whether URL is a feed, a sitemap or a page, what its robots.txt allows, how many pages it names, and "
         "shows the first documents as training would get them. Reads as politely as training does: a second and more "
         "between pages of a host. Exits 1 when nothing can be read, with the reason.",
     .examples = "streamvec source check https://example.org/feed.xml\n"
                 "streamvec source check http://127.0.0.1:8000/ --allow-private 127.0.0.1:8000\n",
     .words_min = 2,
     .words_max = 2},
    {.name = "serve",
     .synopsis = "DIR [--listen 127.0.0.1:8080]",
     .summary = "answer questions about a model over HTTP",
     .details =
         "Neighbours, analogies, vectors, similarity, a word's neighbours through time, words that changed their "
         "meaning, words by prefix, figures for Prometheus, events (docs/SERVING.md; the service itself has an OpenAPI "
         "document at /api/openapi.json). New checkpoints of DIR are served as they come, without a pause.\n"
         "Only this machine can ask unless --listen says otherwise. Other addresses need a token, in the environment "
         "variable STREAMVEC_TOKEN or in --token-file, or client certificates (--tls-client-ca). Runs until Ctrl-C.",
     .examples = "streamvec serve model\n"
                 "STREAMVEC_TOKEN=$(cat token) streamvec serve model --listen 0.0.0.0:8080 --allow-host example.org\n",
     .words_min = 1,
     .words_max = 1},
    {.name = "launch",
     .synopsis = "-n NODES [--servers S] -- train ...",
     .summary = "train on this machine as a cluster of several processes",
     .details =
         "Starts `train` once for every node, with the options after --; each reads the same sources and trains on its "
         "share of them, and --sync says how they keep in step. Of streams each node reads all that it is given, with "
         "--divide its part, of a broker's with shared=1 its share; {rank} in a word after -- becomes the node's "
         "number, from 0. The first node writes the model and the report. Without --threads the cores are divided "
         "among the nodes. For several machines, start `train` on each with --nodes and --rank.",
     .examples = "streamvec launch -n 4 -- train corpus.txt --out model --sync ssp\n"
                 "streamvec launch -n 2 -- train kafka://host/news?shared=1 --out model --vocab-max 200000\n"
                 "streamvec launch -n 4 --servers 2 -- train corpus.txt --out model --json\n",
     .words_min = 1,
     .words_max = -1},
    {.name = "reproduce",
     .synopsis = "--corpus DIR --out REPORT [options]",
     .summary = "run the distributed experiment of 2018 again and report",
     .details =
         "Trains at dim 50 and 200 with batches of 1024, 8192 and of the kernel's own size, in one process on one core "
         "and on several, and as clusters of -n processes on this machine, synchronous and asynchronous; the character "
         "model once. Each row is measured after 1, 2, 4 ... epochs. With --as-published the program of 2018 runs as "
         "well, faults included: its start from large random weights, nodes that were never given the first one's, "
         "sums that nobody waited for.\n"
         "REPORT is one HTML file with tables and plots, the figures of 2018 beside ours, and the command of every "
         "row. "
         "It is written anew whenever a row was measured; Ctrl-C leaves it with what is done.",
     .examples = "streamvec reproduce --corpus novels --out report.html --stem english\n"
                 "streamvec reproduce --corpus novels --out report.html --quick --as-published --json\n"},
    {.name = "simulate",
     .synopsis = "[SOURCE...] [--nodes 4,16,64,256] [--bandwidth 1Gbit,10Gbit,100Gbit]",
     .summary = "how fast a cluster would be that is not there",
     .details =
         "Trains sgns on the sources with one node and with two, on this machine, and fits what a word and a row cost; "
         "runs four nodes and prints how far off the prediction is. Then clusters of every size and network run under "
         "virtual clocks, with the real kernels, owners and codecs: what they learn is real, how long it takes is "
         "computed. One node runs likewise, and clusters that end with more than .01 of loss above it are marked: they "
         "are not at one node's quality. Give enough text for the largest one: a node that never pushes has nothing to "
         "tell. Without a source it is made-up text of 4 million words, few of them different.",
     .examples = "streamvec simulate corpus.txt --nodes 4,16,64 --bandwidth 1Gbit\n"
                 "streamvec simulate corpus.txt --dim 100 --sync ssp --json\n",
     .words_max = -1},
    {.name = "version", .synopsis = "", .summary = "print the version", .details = "", .examples = ""},
    {.name = "help",
     .synopsis = "[COMMAND]",
     .summary = "explain the program or a command",
     .details = "",
     .examples = "streamvec help train\n",
     .words_max = 1},
});

constexpr std::array kOptions = std::to_array<Option>({
    {"out", Kind::kText, "DIR", "", "", "train import reproduce",
     "the model directory to write; of reproduce, the HTML file", 0, 0, false, "train import reproduce"},
    {"corpus", Kind::kText, "DIR", "", "", "reproduce", "the text: a directory, or a file", 0, 0, false, "reproduce"},
    {"as-published", Kind::kFlag, "", "false", "", "reproduce", "run the program of 2018, too, with its faults"},
    {"quick", Kind::kFlag, "", "false", "", "reproduce",
     "a slice of the text, dim 50 and batch 1024 alone, two epochs: seconds"},
    {"only", Kind::kText, "PART", "", "", "reproduce",
     "rows whose name has PART in it (sound, sgns-200, 8192-sync, rbsg, ...)"},
    {"published-epochs", Kind::kInteger, "N", "", "--epochs", "reproduce",
     "epochs of the rows as published; 2018 had 300", 1, 1000000},
    {"rbsg-epochs", Kind::kInteger, "N", "1", "", "reproduce", "epochs of the character model", 1, 1000000},
    {"format", Kind::kChoice, "word2vec|word2vec-bin|glove|npy|safetensors|projector|fasttext-bin", "", "", "export",
     "how to write", 0, 0, false, "export"},
    {"model", Kind::kChoice, "sgns|cbow|subword|glove|rbsg|hybrid", "sgns", "", "train",
     "what is learned: sgns predicts the words around a word, cbow a word from those around it, subword is sgns over "
     "words made of their character n-grams, as fastText's, and has vectors for words never seen, glove fits the "
     "logarithms of co-occurrence counts, rbsg reads a word's characters with a recurrent network, so that every "
     "string has a vector, hybrid is sgns whose words share what they learn with those spelled alike, so that words "
     "never seen have vectors, too, and rare ones better ones"},
    {"dim", Kind::kInteger, "N", "200", "", "train simulate", "values of a vector", 1, 65536},
    {"window", Kind::kInteger, "N", "5", "", "train simulate", "most words to each side that count as context", 1,
     1000},
    {"negatives", Kind::kInteger, "N", "10", "", "train simulate",
     "random words weighed against each pair; not of glove", 1, 1000},
    {"sample", Kind::kReal, "X", "2e-3", "", "train simulate",
     "words above this share of the text are thinned out; 0: none; not of glove", 0, 1},
    {"pace", Kind::kReal, "X", "8", "", "train simulate",
     "of sgns and hybrid with sgd: rows of rare words take up to this many times as long steps; 1: all rows alike", 1,
     100},
    {"min-count", Kind::kInteger, "N", "3", "", "train simulate", "words seen less often are left out", 1, kIntegerMax},
    {"minn", Kind::kInteger, "N", "3", "", "train", "of subword: characters of the shortest n-gram", 1, 64},
    {"maxn", Kind::kInteger, "N", "6", "", "train", "of subword: characters of the longest n-gram", 1, 64},
    {"bucket", Kind::kInteger, "N", "2000000", "", "train", "of subword: how many hashes n-grams share", 1, kSlotsMax},
    {"hidden", Kind::kInteger, "N", "512", "", "train", "of rbsg: values of the state, a multiple of 16", 16, 8192},
    {"char-dim", Kind::kInteger, "N", "128", "", "train", "of rbsg: values of a character", 1, 8192},
    {"cell", Kind::kChoice, "lstm|gru", "lstm", "", "train", "of rbsg: how a state becomes the next one"},
    {"jamo", Kind::kFlag, "", "false", "", "train",
     "of subword: Hangul syllables are taken apart into letters before n-grams are made (fastText does not)"},
    {"epochs", Kind::kInteger, "N", "", "1; glove 15; sandblaster 50; reproduce 16", "train reproduce simulate",
     "times the text is read for training; of glove, iterations over the co-occurrences; of sandblaster, steps", 1,
     1000000},
    {"x-max", Kind::kReal, "X", "100", "", "train", "of glove: pairs this frequent have the full weight", 1e-9, 1e18},
    {"alpha", Kind::kReal, "X", "0.75", "", "train", "of glove: rarer pairs weigh (x / x-max)^alpha", 0, 10},
    {"memory", Kind::kInteger, "MB", "1024", "", "train",
     "of glove: for co-occurrences; of files, the rest goes to temporary files in DIR", 1, 1 << 24},
    {"threads", Kind::kInteger, "N", "0", "0, one per core", "train", "1 makes runs over files repeatable", 0, 1024},
    {"device", Kind::kChoice, "cpu|cuda|auto", "cpu", "", "train eval reproduce",
     "where to train and to compute eval's large products: cuda is an NVIDIA GPU (training: sgns and hybrid with sgd "
     "or adagrad, and rbsg), auto takes it where there is one that can train this; too little memory there is an "
     "error"},
    {"table", Kind::kChoice, "fp32|bf16", "fp32", "", "train",
     "with --device cuda, sgns and hybrid: how rows are kept there; bf16 takes half the memory, steps rounded by "
     "chance"},
    {"products", Kind::kChoice, "tf32|bf16", "", "bf16", "train",
     "with --device cuda, rbsg: precision of what its recurrent products multiply; sums are in fp32"},
    {"lr", Kind::kReal, "X", "", "0.05 for sgd", "train simulate",
     "learning rate at the start (sgd 0.05, on a card 0.06, cbow 0.2; adagrad 0.3; adam 0.02; rbsg 0.008, with adam "
     "0.001; glove 0.05); "
     "of a stream, all the time (half of that)",
     1e-9, 100},
    {"schedule", Kind::kChoice, "linear|constant|cosine", "linear", "", "train",
     "how the learning rate falls; that of glove and of streams does not"},
    {"optimizer", Kind::kChoice, "sgd|adagrad|adam|muon", "sgd", "", "train",
     "how gradients become steps; rbsg has muon unless adam is asked for, glove AdaGrad of its own"},
    {"kernel", Kind::kChoice, "auto|reference|simd|bf16|amx", "auto", "", "train simulate",
     "which arithmetic; auto is the fastest this machine has (glove has simd and reference alone)"},
    {"batch", Kind::kInteger, "N", "0", "0, the kernel's own", "train",
     "centre words taken at one point (to 4096); of rbsg pairs (8192; 9216 where nodes make one step); not of glove", 0,
     1000000},
    {"vocab-max", Kind::kInteger, "N", "0", "0, no limit", "train", "most words kept, the frequent ones first", 0,
     kSlotsMax},
    {"stream", Kind::kFlag, "", "false", "", "train",
     "train on the text as it comes, in one pass; sources that never end always are, and --half-life, --replay and "
     "--replay-ratio ask for it"},
    {"half-life", Kind::kText, "TIME", "never", "", "train",
     "how fast a stream's past fades: tokens (5M) or time (12h, 30d, 1y)", 0, 0, false, "", check_half_life},
    {"replay", Kind::kChoice, "once|uniform|loss|gradient", "uniform", "", "train",
     "which text of a stream is trained on: each part once in order, any part held, or by priority"},
    {"replay-ratio", Kind::kReal, "X", "4", "", "train", "times each part of a stream is trained on", 1, 1000},
    {"replay-chunks", Kind::kInteger, "N", "65536", "", "train", "parts of a stream held, of about 256 words", 16,
     kSlotsMax},
    {"drop-duplicates", Kind::kFlag, "", "false", "", "train",
     "of a stream: leave out documents that nearly equal a recent one"},
    {"language", Kind::kText, "CODE", "", "", "train", "of a stream: only documents of this language (en, ko, ...)", 0,
     0, true, "", check_language},
    {"evaluate-every", Kind::kReal, "SECONDS", "30", "", "train",
     "how often a stream is measured into DIR/metrics.jsonl; 0: at the end", 0, kSecondsMax},
    {"snapshot-every", Kind::kInteger, "TOKENS", "5000000", "", "train",
     "how often a stream's vectors go into DIR/history, for drift; 0: never", 0, kIntegerMax},
    {"no-drift", Kind::kFlag, "", "false", "", "train",
     "do not train the two half-stream models that tell drift from chance (glove and rbsg never do)"},
    {"seed", Kind::kInteger, "N", "1", "", "train demo reproduce simulate", "of all random numbers", 0, kIntegerMax},
    {"checkpoint-every", Kind::kReal, "SECONDS", "0", "0, at the end only; 60 for a stream", "train",
     "save this often while training", 0, kSecondsMax},
    {"tokenizer", Kind::kChoice, "words|whitespace", "words", "", "train",
     "words drops punctuation; whitespace cuts as word2vec and fastText do"},
    {"keep-case", Kind::kFlag, "", "false", "", "train", "King and king are two words"},
    {"no-nfkc", Kind::kFlag, "", "false", "", "train", "leave Unicode compatibility forms as they are"},
    {"stop-words", Kind::kText, "F", "", "", "train",
     "leave out the words of this file, one a line; `english` is built in", 0, 0, true},
    {"stem", Kind::kText, "LANGUAGE", "", "", "train reproduce",
     "learn word stems by a Snowball stemmer (english, german, ...)", 0, 0, false, "", check_stem},
    {"lemmas", Kind::kText, "F", "", "", "train", "replace words by this file's `form<TAB>lemma` lines"},
    {"similarity", Kind::kText, "F", "", "", "train eval reproduce",
     "a word similarity set; of train, for streams, measured on the way", 0, 0, true},
    {"analogy", Kind::kText, "F", "", "", "train eval", "an analogy set; likewise", 0, 0, true},
    {"analogy-vocab", Kind::kInteger, "N", "30000", "", "eval",
     "answers are sought among this many most frequent words; 0: all", 0, kSlotsMax},
    {"pip", Kind::kFlag, "", "false", "", "eval",
     "distance to the factorised co-occurrence statistics (SPPMI), with its references"},
    {"text", Kind::kText, "F", "", "", "eval",
     "text for the held-out loss, --pip and --choose-dim; without it these two take what the model was last trained on",
     0, 0, true},
    {"choose-dim", Kind::kFlag, "", "false", "", "eval", "which --dim the text supports (Yin and Shen 2018)"},
    {"nodes", Kind::kText, "HOST:PORT,...", "", "", "train", "the nodes of a cluster, this one among them", 0, 0, false,
     "", check_addresses},
    {"nodes", Kind::kText, "N,...", "", "4,16,64,256", "simulate", "how many nodes the clusters have", 0, 0, false, "",
     check_node_counts},
    {"bandwidth", Kind::kText, "RATE,...", "1Gbit,10Gbit,100Gbit", "", "simulate", "of every node's network, each way",
     0, 0, false, "", check_bandwidths},
    {"latency", Kind::kReal, "MICROSECONDS", "50", "", "simulate", "from one node to another", 0, 1e6},
    {"etcd", Kind::kText, "URL", "", "", "train",
     "nodes find each other by this etcd instead of --nodes and --rank; --address and --workers go with it", 0, 0,
     false, "", check_etcd},
    {"job", Kind::kText, "NAME", "streamvec", "", "train", "of --etcd: nodes of one name belong together"},
    {"address", Kind::kText, "HOST:PORT", "", "", "train", "of --etcd: where the others reach this node", 0, 0, false,
     "", check_address},
    {"workers", Kind::kInteger, "N", "2", "", "train",
     "of --etcd: how many nodes it begins with, --servers among them; more may join while it trains", 1, 65535},
    {"rank", Kind::kInteger, "N", "0", "", "train", "which of --nodes this is, from 0; the first leads and saves", 0,
     65535},
    {"servers", Kind::kInteger, "N", "0", "0: every node owns a share", "train launch",
     "how many of the last nodes only own rows", 0, 65535},
    {"ingest", Kind::kInteger, "N", "0", "0: every node reads", "train",
     "of streams: how many nodes, the last but for --servers, only read, for those that train", 0, 65535},
    {"divide", Kind::kFlag, "", "false", "", "train",
     "of streams: all nodes name the same sources, and each source is read by one of them"},
    {"sync", Kind::kChoice, "bsp|backup|ssp|softsync|async|ring|hybrid|auto|sandblaster", "bsp", "", "train simulate",
     "how the nodes keep in step: in rounds of all, of all but --backups, at most --staleness apart, in groups, or "
     "freely; ring: all values in rounds, by all-reduce; hybrid: rows by their owners, the rest by a ring; "
     "auto: in step while all are equally fast, else further apart; sandblaster: all text as one batch, each epoch a "
     "step of L-BFGS; simulate has the first five"},
    {"shard", Kind::kChoice, "no|rows|columns", "no", "", "train",
     "for models beyond a node's memory; rows: every row of a cluster lies with one node alone, which is asked for it; "
     "columns: every node has some columns of all rows, and all train on the same text in step"},
    {"lbfgs-history", Kind::kInteger, "N", "10", "", "train",
     "of sandblaster: steps that are remembered, two vectors each", 1, 100},
    {"combine", Kind::kChoice, "damped|adasum|mean|sum", "damped", "", "train simulate",
     "what becomes of changes that several nodes made to one row"},
    {"codec", Kind::kChoice, "auto|onebit|fourbit|strom|fp16|fp32", "auto", "", "train simulate",
     "how changes are sent: auto is fourbit up to --dim 128 where the network carries it (simulate: on any), else "
     "onebit"},
    {"staleness", Kind::kInteger, "N", "2", "", "train simulate",
     "of ssp: pushes that a node may be ahead of the slowest; of rbsg on files, if given: every node steps by itself, "
     "as nodes of unequal speed want; of rbsg, 0: each batch waits for what the others' last ones did",
     0, 1000000},
    {"backups", Kind::kInteger, "N", "1", "", "train simulate", "of backup: nodes that a round does not wait for", 0,
     65535},
    {"group", Kind::kInteger, "N", "2", "", "train simulate", "of softsync: pushes that make a step", 1, 65535},
    {"ring-rank", Kind::kInteger, "N", "0", "0: whole matrices", "train",
     "of rbsg on several nodes: send changes as products of two thin matrices of this rank (PowerSGD)", 0, 4096},
    {"sync-words", Kind::kInteger, "N", "0", "0: of damped by the length of the run, else 10,000", "train simulate",
     "words that a node trains on between two pushes at least, if no other waits for one", 0, kIntegerMax},
    {"dead-after", Kind::kReal, "SECONDS", "10", "", "train", "a node that is silent for longer is left out", 0.1,
     kSecondsMax},
    {"cluster-ca", Kind::kText, "F.pem", "", "", "train",
     "who signed the nodes' certificates; nodes on other machines need these three, or a shared secret in "
     "STREAMVEC_CLUSTER_TOKEN"},
    {"cluster-certificate", Kind::kText, "F.pem", "", "", "train", "this node's certificate"},
    {"cluster-key", Kind::kText, "F.pem", "", "", "train", "its key"},
    {"n", Kind::kInteger, "N", "", "reproduce: the cores, 2 to 4", "launch reproduce", "how many nodes train", 1, 1024,
     false, "launch"},
    {"pin", Kind::kFlag, "", "false", "", "launch",
     "every node that trains gets cores of its own, if there are enough"},
    {"listen", Kind::kText, "HOST:PORT", "", "serve: 127.0.0.1:8080", "train demo serve",
     "answer questions and show progress at this address; port 0: any free one", 0, 0, false, "", check_address},
    {"listen-grpc", Kind::kText, "HOST:PORT", "", "", "train demo serve",
     "the same calls over gRPC (protos/streamvec_query.proto)", 0, 0, false, "", check_address},
    {"keep", Kind::kFlag, "", "false", "", "train demo",
     "go on answering at --listen when training is over, until Ctrl-C"},
    {"token-file", Kind::kText, "F", "", "", "train demo serve",
     "who may ask: TOKEN [query|metrics] [EXPIRES] a line; STREAMVEC_TOKEN in the environment is one more"},
    {"tls-certificate", Kind::kText, "F.pem", "", "", "train demo serve",
     "speak TLS, with this certificate (and chain)"},
    {"tls-key", Kind::kText, "F.pem", "", "", "train demo serve", "its key"},
    {"tls-client-ca", Kind::kText, "F.pem", "", "", "train demo serve",
     "only clients with a certificate that this has signed; OU=metrics allows figures only"},
    {"allow-host", Kind::kText, "NAME", "", "", "train demo serve", "a name that this service goes by", 0, 0, true},
    {"allow-origin", Kind::kText, "ORIGIN", "", "", "train demo serve",
     "a site whose pages may ask (https://example.org)", 0, 0, true},
    {"serve-threads", Kind::kInteger, "N", "0", "0, half the cores, at most 4", "train demo serve",
     "threads that answer questions", 0, 256},
    {"exact-max", Kind::kInteger, "N", "1000000", "", "train demo serve",
     "models with more words are searched by an index (HNSW), which finds nearly all neighbours", 0, kSlotsMax},
    {"connections-max", Kind::kInteger, "N", "4096", "", "train demo serve", "open at once, of all clients", 1,
     1000000},
    {"client-connections", Kind::kInteger, "N", "256", "256; this machine: no limit", "train demo serve",
     "open at once, of one address; 0: no limit", 0, 1000000},
    {"client-rate", Kind::kReal, "N", "200", "200; this machine: no limit", "train demo serve",
     "requests a second of one address; 0: no limit", 0, 1e9},
    {"request-timeout", Kind::kReal, "SECONDS", "10", "", "train demo serve",
     "a request's header has to be there by then, its body by three times that", 0.1, kSecondsMax},
    {"body-max", Kind::kInteger, "BYTES", "1048576", "", "train demo serve", "of one request", 1024, 1 << 30},
    {"k", Kind::kInteger, "N", "10", "", "nearest analogy drift", "how many words to show", 1, kSlotsMax},
    {"from", Kind::kText, "STEP|TIME", "", "the first with a quarter of the text; the oldest for WORDs", "drift",
     "the snapshot nearest to this step or time", 0, 0, false, "", check_moment},
    {"to", Kind::kText, "STEP|TIME", "", "the newest", "drift", "the snapshot to compare it with", 0, 0, false, "",
     check_moment},
    {"seconds", Kind::kReal, "N", "60", "", "demo", "how long the site writes; readers may take longer", 0.1, 3600},
    {"documents", Kind::kInteger, "N", "3", "", "source", "how many documents to show", 1, 10000},
    {"timeout", Kind::kReal, "SECONDS", "60", "", "source", "give up after this long", 0.1, kSecondsMax},
    {"allow-private", Kind::kText, "HOST", "", "", "train source",
     "read HOST (or HOST:PORT) though its address is not public", 0, 0, true},
    {"ca", Kind::kText, "FILE", "", "the system's", "train source", "certificates that vouch for web hosts (https)"},
    {"fetch-delay", Kind::kReal, "SECONDS", "1", "", "train", "least time between two fetches from one web host", 0,
     kSecondsMax},
    {"poll-every", Kind::kReal, "SECONDS", "60", "", "train", "least time between two looks at a feed", 0.01,
     kSecondsMax},
    {"config", Kind::kText, "F.toml", "", "", "train serve eval nearest analogy drift export import demo reproduce",
     "read options from this file, by the same names; flags win over it"},
    {"json", Kind::kFlag, "", "false", "",
     "train serve eval nearest analogy vector drift export import demo reproduce simulate version source",
     "print one JSON value at the end"},
});

}  // namespace

std::span<const Command> commands() {
  return kCommands;
}
std::span<const Option> options() {
  return kOptions;
}

}  // namespace streamvec::cli
