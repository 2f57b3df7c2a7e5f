#include "streamvec/train/training_start.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <thread>

#include "streamvec/core/json.h"
#include "streamvec/kernel/pair_block.h"
#include "streamvec/model/model.h"
#include "streamvec/text/word_filter.h"
#include "streamvec/train/counting.h"
#include "streamvec/train/glove_state.h"
#include "streamvec/train/shard_start.h"

namespace streamvec {
namespace {

constexpr int64_t kDimDefault = 200, kDimMax = 65536;
constexpr int32_t kBatchMax = 1'000'000;
constexpr int64_t kReplayChunksMax = int64_t{1} << 31;
constexpr int64_t kVocabMax = std::numeric_limits<Slot>::max();
constexpr double kSecondsMax = 1e9;
constexpr const char* kStreamPlaces = "stream";
constexpr const char* kText = "text";  // of a run's description: Source::contents()

}  // namespace

Result<FormOf> open_word_filter(const TrainOptions& options) {
  if (options.stop_words.empty() && options.stem.empty() && options.lemmas.empty()) return FormOf();
  WordFilterOptions filter_options;
  filter_options.stop_words = options.stop_words;
  filter_options.stem = options.stem;
  filter_options.lemmas = options.lemmas;
  filter_options.tokenizer = options.tokenizer;
  STREAMVEC_ASSIGN_OR_RETURN(WordFilter opened, WordFilter::open(filter_options));
  auto filter = std::make_shared<const WordFilter>(std::move(opened));
  return FormOf([filter](std::string_view word) { return filter->apply(word); });
}

Result<std::optional<Checkpoint>> load_existing(const std::string& out) {
  Result<Checkpoint> loaded = load_checkpoint(out, kTableRowsMax);
  if (loaded.ok()) return std::optional<Checkpoint>(std::move(loaded).value());
  if (loaded.status().code() == Code::kNotFound) return std::optional<Checkpoint>();
  return loaded.status();
}

namespace {

// Words that were made in another way are others: "King" and "king", "running" and "run".
Status check_words(const TrainOptions& options, const nlohmann::json& before, const std::string& out) {
  if (!before.is_object()) return {};  // imported
  const nlohmann::json now = describe_run(options, 0, {});
  for (const char* name : {"tokenizer", "keep-case", "no-nfkc", "stem"}) {
    const nlohmann::json then = before.value(name, now.at(name));
    if (then == now.at(name)) continue;
    const auto shown = [&](const nlohmann::json& value) {
      if (value.is_boolean()) return (value.get<bool>() ? "with --" : "without --") + std::string(name);
      const std::string text = value.is_string() ? value.get<std::string>() : json_text(value);
      return text.empty() ? "without --" + std::string(name) : "with --" + std::string(name) + " " + text;
    };
    return error(Code::kFailedPrecondition, out, " holds words that were made ", shown(then),
                 ", and this run would make them ", shown(now.at(name)), "; give the same again, or another --out");
  }
  if (before.value("lemmas", options.lemmas).empty() != options.lemmas.empty())
    return error(Code::kFailedPrecondition, out, " holds words that were made ",
                 options.lemmas.empty() ? "with --lemmas, and this run has none" : "without --lemmas",
                 "; give the same again, or another --out");
  return {};
}

}  // namespace

Status check_same(const TrainOptions& options, const Checkpoint& existing, const std::string& out) {
  if (options.dim && *options.dim != existing.input.cols())
    return error(Code::kFailedPrecondition, out, " holds ", existing.input.cols(),
                 "-dimensional vectors, --dim asks for ", *options.dim, "; try --dim ", existing.input.cols(),
                 " or another --out");
  if (options.model && *options.model != existing.model)
    return error(Code::kFailedPrecondition, out, " holds a ", existing.model, " model, --model asks for ",
                 *options.model, "; try --model ", existing.model, " or another --out");
  STREAMVEC_RETURN_IF_ERROR(check_words(options, existing.state.value("run", nlohmann::json()), out));
  return make_model_state(existing.model)->check_same(options, existing, out);
}

Status no_word(const std::string& source, int64_t tokens, int64_t min_count) {
  return error(Code::kInvalidArgument, source, " has ", tokens, " tokens, but no word ", min_count, " times; try ",
               min_count > 1 ? "--min-count 1 or more text" : "more text");
}

nlohmann::json stream_places_of(const Checkpoint& existing) {
  if (!existing.cursors.is_object()) return {};
  const nlohmann::json sources = existing.cursors.value("sources", nlohmann::json());
  return sources.is_array() ? existing.cursors : existing.cursors.value(kStreamPlaces, nlohmann::json());
}

Result<Parameters> parameters_from(Checkpoint& existing, Parameters::Options options) {
  options.rows = existing.input.rows();
  options.dim = existing.input.cols();
  STREAMVEC_RETURN_IF_ERROR(make_model_state(existing.model)->take_rows(existing));
  STREAMVEC_ASSIGN_OR_RETURN(Parameters parameters, Parameters::make(options));
  parameters.input.rows = std::move(existing.input);
  if (existing.output.rows() > 0) parameters.output.rows = std::move(existing.output);
  for (auto [table, prefix] : {std::pair{&parameters.input, "input."}, std::pair{&parameters.output, "output."}})
    for (Optimizer::State& state : table->optimizer->states())
      if (auto found = existing.optimizer.find(prefix + state.name); found != existing.optimizer.end())
        *state.values = std::move(found->second);
  return parameters;
}

Status check_optimizer(const TrainOptions& options, const std::string& model) {
  if (model == "rbsg" && options.optimizer == "adagrad")
    return error(Code::kInvalidArgument, "--model rbsg has muon or adam, --optimizer asks for adagrad; leave it out");
  if (model != "rbsg" && options.optimizer == "muon")
    return error(Code::kInvalidArgument, "--optimizer muon is for --model rbsg, not for ", model, "; try sgd");
  return {};
}

Result<OptimizerKind> row_optimizer(const TrainOptions& options, const std::string& model) {
  if (model == "rbsg") return OptimizerKind::kSgd;
  return parse_optimizer(options.optimizer);
}

double rate_of_device(const TrainOptions& options, const std::string& model) {
  constexpr double kRateOfCard = 1.2;
  return options.device == "cuda" && model != "rbsg" && options.optimizer == "sgd" ? kRateOfCard : 1;
}

RowPace::Options row_pace_options(const TrainOptions& options, const std::string& model, double passes) {
  const bool paced = (model == "sgns" || model == "hybrid") && options.optimizer == "sgd";
  return {.pace_max = paced ? options.pace : 1, .passes = passes};
}

void describe_pace(const TrainOptions& options, const std::string& model, nlohmann::json& description) {
  if (row_pace_options(options, model, 1).pace_max > 1) description["pace"] = options.pace;
}

ModelOptions model_options(const TrainOptions& options, const std::string& model, int32_t threads) {
  ModelOptions made;
  made.model = model;
  made.windows.window = options.window;
  made.windows.negatives = options.negatives;
  made.batch = options.batch;
  made.kernel = options.kernel;
  made.threads = threads;
  made.cuda = options.device == "cuda";
  made.bf16_tables = options.table == "bf16";
  return made;
}

std::vector<NamedMatrix> optimizer_tables(Parameters& parameters) {
  std::vector<NamedMatrix> tables;
  for (auto [table, prefix] : {std::pair{&parameters.input, "input."}, std::pair{&parameters.output, "output."}})
    for (const Optimizer::State& kept : table->optimizer->states())
      tables.push_back({prefix + kept.name, kept.values->view()});
  return tables;
}

namespace {

// Goes on where the stopped run was; false when this is another run, or its text is no longer the same.
Result<bool> resume(const Checkpoint& existing, const std::string& out, TrainingStart& start) {
  const nlohmann::json before = existing.state.value("run", nlohmann::json());
  if (before.is_null() || existing.state.contains("stream")) return false;  // imported vectors, or a stream's
  STREAMVEC_ASSIGN_OR_RETURN(RunState state,
                             run_state_from_json(existing.state.value("progress", nlohmann::json()), existing.cursors));
  if (state.finished || !start.source->capabilities().replayable) return false;
  nlohmann::json now = start.description;
  if (!before.contains(kText)) now.erase(kText);  // of a run before that was looked at
  if (before != now) {
    const std::string which = differences(before, now);
    const std::string why = which == kText ? ", but its text has changed: files have come, gone or become others"
                                           : ", with other options (" + which + ")";
    start.notes.push_back(out + " holds a run that was stopped" + why + "; its vectors go on with a new run");
    return false;
  }
  if (Status status = start.source->seek(state.cursor); !status.ok()) {
    start.notes.push_back("the stopped run in " + out + " cannot go on where it was (" + status.message() +
                          "); its vectors go on with a new run");
    return false;
  }
  state.step = existing.step;
  start.state = state;
  return true;
}

// Counts the text and takes its words into the vocabulary.
Status count_text(const TrainOptions& options, const TrainHooks& hooks, TrainingStart& start) {
  STREAMVEC_ASSIGN_OR_RETURN(
      Counted counted, count_words(*start.source, options.tokenizer, WordCounter::types_max_for(options.vocab_max),
                                   start.threads, hooks));
  start.cancelled = counted.stopped;
  if (counted.stopped) return {};
  VocabularyLimits limits{options.min_count, options.vocab_max};
  if (start.vocabulary.size() > 0)
    limits.vocab_max = std::min(limits.vocab_max ? limits.vocab_max : kTableRowsMax, kTableRowsMax);
  counted.words.extend(start.vocabulary, limits, start.form_of);
  if (start.vocabulary.size() == 0) return no_word(start.source->name(), counted.tokens, options.min_count);
  start.state.epoch_tokens = counted.tokens;
  start.epoch_pieces = counted.pieces;
  if (options.cluster.on()) start.trail = std::move(counted.trail);
  return start.source->seek("");
}

Status begin_new_run(const TrainOptions& options, const TrainHooks& hooks, TrainingStart& start) {
  start.growing = !start.source->capabilities().replayable;
  if (!start.growing) return count_text(options, hooks, start);
  if (options.epochs > 1)
    return error(Code::kInvalidArgument, start.source->name(), " can be read only once, --epochs asks for ",
                 options.epochs, "; try --epochs 1, or a file");
  return {};
}

Status check_seconds(const char* name, double seconds) {
  if (seconds >= 0 && seconds <= kSecondsMax) return {};
  return error(Code::kInvalidArgument, name, " is ", seconds, "; it must be 0 to 1000000000 seconds");
}

Status check_stream(const StreamOptions& stream) {
  if (!(stream.replay_ratio > 0) || stream.replay_ratio > 1000)
    return error(Code::kInvalidArgument, "--replay-ratio is ", stream.replay_ratio,
                 "; it must be above 0, at most 1000");
  if (stream.replay_chunks < 16 || stream.replay_chunks > kReplayChunksMax)
    return error(Code::kInvalidArgument, "--replay-chunks is ", stream.replay_chunks, "; it must be 16 to ",
                 kReplayChunksMax);
  if (stream.snapshot_every < 0)
    return error(Code::kInvalidArgument, "--snapshot-every is ", stream.snapshot_every, "; it must be 0 or more");
  return check_seconds("--evaluate-every", stream.evaluate_every_s);
}

// What says which of several nodes this is, or what they do: one that takes itself for the second would save nothing.
Status check_alone(const ClusterSettings& cluster) {
  if (cluster.on()) return {};
  for (const auto& [option, value] : {std::pair{"--rank", cluster.rank}, std::pair{"--servers", cluster.servers},
                                      std::pair{"--ingest", cluster.ingest}})
    if (value != 0)
      return error(Code::kInvalidArgument, option, " ", value, " needs --nodes, the nodes of a cluster; give them, or ",
                   "leave it out");
  return {};
}

}  // namespace

Status check_options(const TrainOptions& options) {
  const auto wrong = [](const char* name, auto value, const char* range) {
    return error(Code::kInvalidArgument, name, " is ", value, "; it must be ", range);
  };
  if (options.dim && (*options.dim < 1 || *options.dim > kDimMax)) return wrong("--dim", *options.dim, "1 to 65536");
  if (options.window < 1 || options.window > 1000) return wrong("--window", options.window, "1 to 1000");
  if (options.negatives < 1 || options.negatives > 1000) return wrong("--negatives", options.negatives, "1 to 1000");
  if (!(options.sample >= 0 && options.sample <= 1)) return wrong("--sample", options.sample, "0 to 1");
  if (!(options.pace >= 1 && options.pace <= 100)) return wrong("--pace", options.pace, "1 to 100");
  if (options.min_count < 1) return wrong("--min-count", options.min_count, "1 or more");
  if (options.epochs < 0 || options.epochs > 1'000'000) return wrong("--epochs", options.epochs, "1 to 1000000");
  if (options.threads < 0 || options.threads > 1024) return wrong("--threads", options.threads, "0 to 1024");
  if (options.batch < 0 || options.batch > kBatchMax) return wrong("--batch", options.batch, "0 to 1000000");
  if (options.vocab_max < 0 || options.vocab_max > kVocabMax)
    return wrong("--vocab-max", options.vocab_max, "0 to 2147483647");
  if (options.lr && !(*options.lr > 0 && *options.lr <= 100)) return wrong("--lr", *options.lr, "above 0, at most 100");
  STREAMVEC_RETURN_IF_ERROR(check_seconds("--checkpoint-every", options.checkpoint_every_s.value_or(0)));
  STREAMVEC_RETURN_IF_ERROR(check_model(options.model.value_or("sgns")));
  for (const std::string_view model : model_names())
    STREAMVEC_RETURN_IF_ERROR(make_model_state(model)->check_options(options));
  STREAMVEC_RETURN_IF_ERROR(check_stream(options.stream));
  STREAMVEC_RETURN_IF_ERROR(check_alone(options.cluster));
  STREAMVEC_RETURN_IF_ERROR(parse_schedule(options.schedule).status());
  STREAMVEC_RETURN_IF_ERROR(parse_optimizer(options.optimizer).status());
  if (options.model) STREAMVEC_RETURN_IF_ERROR(check_optimizer(options, *options.model));
  return make_pair_kernel(options.kernel).status();
}

Result<TrainingStart> prepare(const TrainOptions& options, const std::vector<std::string>& source_names,
                              std::unique_ptr<Source> source, const std::string& out,
                              std::optional<Checkpoint> existing, const TrainHooks& hooks) {
  TrainingStart start;
  start.source = std::move(source);
  STREAMVEC_ASSIGN_OR_RETURN(const OptimizerKind optimizer, parse_optimizer(options.optimizer));
  STREAMVEC_ASSIGN_OR_RETURN(start.schedule, parse_schedule(options.schedule));
  STREAMVEC_ASSIGN_OR_RETURN(start.form_of, open_word_filter(options));
  start.model = existing ? existing->model : options.model.value_or("sgns");
  start.lr = options.lr.value_or(default_learning_rate(start.model, optimizer) * rate_of_device(options, start.model));
  start.threads = options.threads > 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  start.description = describe_run(options, start.lr, source_names);
  describe_pace(options, start.model, start.description);
  if (const std::string contents = start.source->contents(); !contents.empty()) start.description[kText] = contents;
  if (start.model == "glove") describe_glove(options, start.description);
  if (options.cluster.on() && options.cluster.sync == "sandblaster") start.description["sync"] = options.cluster.sync;
  bool resumed = false;
  if (existing) {
    start.notes = existing->notes;
    start.state.step = existing->step;
    start.stream_places = stream_places_of(*existing);
    start.vocabulary = std::move(existing->vocabulary);
    if (const auto state = existing->extra.find(kVocabularyState); state != existing->extra.end())
      start.vocabulary_state = std::move(state->second);
    STREAMVEC_ASSIGN_OR_RETURN(resumed, resume(*existing, out, start));
  }
  if (!resumed) STREAMVEC_RETURN_IF_ERROR(begin_new_run(options, hooks, start));
  if (start.cancelled) return start;

  Parameters::Options shape;
  const bool sharded = is_sharded(options) && !existing;  // then no node has room for all rows
  shape.rows = sharded ? 0 : start.vocabulary.size();
  shape.rows_max = existing || start.growing ? std::max(options.vocab_max, kTableRowsMax) : 0;
  shape.dim = options.dim.value_or(kDimDefault);
  STREAMVEC_ASSIGN_OR_RETURN(shape.optimizer, row_optimizer(options, start.model));
  shape.seed = options.seed;
  shape.threads = start.threads;
  shape.glove = start.model == "glove";
  if (!existing) STREAMVEC_RETURN_IF_ERROR(Parameters::check_memory(shape));
  STREAMVEC_ASSIGN_OR_RETURN(start.parameters, existing ? parameters_from(*existing, shape) : Parameters::make(shape));
  if (!sharded) start.parameters.grow(start.vocabulary.size());
  start.own = make_model_state(start.model);
  STREAMVEC_RETURN_IF_ERROR(
      start.own->begin(options, existing ? &*existing : nullptr, start.vocabulary, start.parameters));
  // Input rows were just drawn; output rows are zeros that nobody has touched, and training would stand still for each
  // of their pages.
  if (!start.parameters.rbsg) start.parameters.output.rows.take_pages(start.threads);
  return start;
}

TrainProgress TrainingStart::progress(const RunState& now, double loss, int32_t epochs) const {
  TrainProgress progress;
  progress.tokens = now.tokens;
  progress.pairs = now.pairs;
  progress.seconds = now.seconds;
  progress.loss = loss;
  progress.epoch = std::min(now.epoch + 1, epochs);
  progress.vocab = vocabulary.size();
  progress.dim = parameters.dim();
  progress.model = model;
  progress.bytes_replaced = now.bytes_replaced;
  progress.words_dropped = now.words_dropped;
  progress.updates_refused = now.updates_refused;
  progress.notes = notes;
  for (const std::string& note : source->notes()) progress.notes.push_back(note);
  return progress;
}

nlohmann::json TrainingStart::cursors_at(const std::string& cursor) const {
  nlohmann::json cursors = {{"sources", source->saved(cursor)}};
  if (!stream_places.is_null()) cursors[kStreamPlaces] = stream_places;
  return cursors;
}

Result<std::unique_ptr<SlotMapper>> TrainingStart::make_mapper(const TrainOptions& options) {
  if (!growing)
    return std::unique_ptr<SlotMapper>(std::make_unique<FixedSlotMapper>(
        vocabulary, options.sample, row_pace_options(options, model, options.epochs)));
  StreamVocabulary::Options limits;
  limits.min_count = options.min_count;
  limits.vocab_max = options.vocab_max;
  limits.form_of = form_of;
  limits.seed = options.seed;
  limits.slots_max = kTableRowsMax;
  STREAMVEC_RETURN_IF_ERROR(StreamVocabulary::check_memory(limits));
  auto words = vocabulary_state.empty() ? Result<StreamVocabulary>(StreamVocabulary::from(limits, vocabulary, 0))
                                        : StreamVocabulary::restore(limits, vocabulary_state);
  if (!words.ok()) return words.status();
  return std::unique_ptr<SlotMapper>(std::make_unique<GrowingSlotMapper>(
      std::move(*words), parameters, options.sample, row_pace_options(options, model, kPassesOfConstantRate)));
}

}  // namespace streamvec
