#include "streamvec/train/rbsg_state.h"

#include <algorithm>
#include <thread>

namespace streamvec {
namespace {

const char* name_of(RecurrentCell cell) {
  return cell == RecurrentCell::kGru ? "gru" : "lstm";
}

Result<RbsgIndex> index_of(const Checkpoint& existing) {
  const auto found = existing.extra.find(kRbsgFile);
  if (found == existing.extra.end())
    return error(Code::kDataLoss, "the checkpoint of step ", existing.step, " is of an rbsg model and has no ",
                 kRbsgFile);
  return RbsgIndex::decode(found->second, kRbsgFile);
}

// What the options say, and `otherwise` where they are silent.
EncoderShape wanted_shape(const TrainOptions& options, EncoderShape otherwise) {
  otherwise.hidden = options.hidden.value_or(otherwise.hidden);
  otherwise.character_dim = options.character_dim.value_or(otherwise.character_dim);
  if (options.cell) otherwise.cell = *options.cell == "gru" ? RecurrentCell::kGru : RecurrentCell::kLstm;
  return otherwise;
}

// Fills a table of the model with the checkpoint's of that name.
Status fill(const Checkpoint& existing, const std::string& name, Matrix& to) {
  const auto found = existing.optimizer.find(name);
  if (found == existing.optimizer.end() || found->second.rows() != to.rows() || found->second.cols() != to.cols())
    return error(Code::kDataLoss, "the checkpoint of step ", existing.step, " has no table ", name, " of ", to.rows(),
                 " x ", to.cols(), "; files of different checkpoints were mixed up");
  for (int64_t i = 0; i < to.rows(); ++i) std::copy_n(found->second.row(i), to.cols(), to.row(i));
  return {};
}

void clear(Matrix& values) {
  for (int64_t i = 0; i < values.rows(); ++i) std::fill_n(values.row(i), values.cols(), 0.0f);
}

// Muon keeps no variance of a matrix's slopes; Adam, which needs it, begins anew then, and warms up again.
void begin_moments_anew(Rbsg& rbsg) {
  for (const Rbsg::Named& state : rbsg.states())
    if (state.name == "rbsg.steps" || state.name.find(".adam.") != state.name.npos) clear(*state.values);
}

// What Adam left of the matrices that Muon steps from now on.
void forget_variances(Rbsg& rbsg) {
  for (const Rbsg::Named& state : rbsg.states())
    for (const std::string_view matrix : {".input.adam.variance", ".recurrent.adam.variance", ".output.adam.variance"})
      if (state.name.ends_with(matrix)) clear(*state.values);
}

bool has_variances(Rbsg& rbsg) {
  for (const Rbsg::Named& state : rbsg.states())
    if (state.name == kRbsgCentre + std::string("recurrent.adam.variance"))
      for (int64_t i = 0; i < state.values->rows(); ++i)
        if (std::any_of(state.values->row(i), state.values->row(i) + state.values->cols(),
                        [](float value) { return value != 0; }))
          return true;
  return false;
}

Result<Matrix> vectors_of(Rbsg& rbsg, Rbsg::Side side, int64_t rows) {
  STREAMVEC_ASSIGN_OR_RETURN(Matrix vectors, Matrix::make(rows, rbsg.options().dim));
  STREAMVEC_RETURN_IF_ERROR(rbsg.embed_slots(side, vectors.view()));
  return vectors;
}

}  // namespace

Status RbsgState::check_options(const TrainOptions& options) const {
  if (options.cell && *options.cell != "lstm" && *options.cell != "gru")
    return error(Code::kInvalidArgument, "no cell is called '", *options.cell, "'; try lstm or gru");
  const int32_t hidden = options.hidden.value_or(16), character_dim = options.character_dim.value_or(1);
  if (hidden < 16 || hidden > 8192 || hidden % 16 != 0)
    return error(Code::kInvalidArgument, "--hidden is ", hidden, "; it must be a multiple of 16, 16 to 8192");
  if (character_dim < 1 || character_dim > 8192)
    return error(Code::kInvalidArgument, "--char-dim is ", character_dim, "; it must be 1 to 8192");
  return {};
}

Status RbsgState::check_same(const TrainOptions& options, const Checkpoint& existing, const std::string& out) const {
  STREAMVEC_ASSIGN_OR_RETURN(const RbsgIndex index, index_of(existing));
  const EncoderShape &has = index.shape, wanted = wanted_shape(options, has);
  if (has.hidden == wanted.hidden && has.character_dim == wanted.character_dim && has.cell == wanted.cell) return {};
  return error(Code::kFailedPrecondition, out, " has encoders of --hidden ", has.hidden, " --char-dim ",
               has.character_dim, " --cell ", name_of(has.cell), ", asked for were ", wanted.hidden, ", ",
               wanted.character_dim, " and ", name_of(wanted.cell), "; leave them out or choose another --out");
}

Status RbsgState::begin(const TrainOptions& options, Checkpoint* existing, const Vocabulary& vocabulary,
                        Parameters& parameters) const {
  RbsgIndex index;
  index.characters.end_mark = false;  // with one, every word's last character would cost a row of the products, too
  if (existing != nullptr) {
    STREAMVEC_ASSIGN_OR_RETURN(index, index_of(*existing));
  }
  const EncoderShape shape = wanted_shape(options, index.shape);
  RbsgOptions made;
  made.dim = static_cast<int32_t>(parameters.dim());
  made.hidden = shape.hidden;
  made.character_dim = shape.character_dim;
  made.cell = shape.cell;
  made.muon = options.optimizer != "adam";
  made.negatives = options.negatives;
  made.threads =
      options.threads > 0 ? options.threads : static_cast<int32_t>(std::max(1u, std::thread::hardware_concurrency()));
  made.seed = options.seed;
  made.characters = index.characters;
  made.fold_case = existing != nullptr ? index.fold_case : options.tokenizer.fold_case;
  made.kernel = options.kernel;
  made.cuda = options.device == "cuda";
  made.cuda_bf16 = options.products.value_or("bf16") == "bf16";
  STREAMVEC_ASSIGN_OR_RETURN(parameters.rbsg, Rbsg::make(made));
  if (existing != nullptr) {
    STREAMVEC_RETURN_IF_ERROR(parameters.rbsg->restore_characters(index.admitted));
    for (const Rbsg::Named& state : parameters.rbsg->states())
      STREAMVEC_RETURN_IF_ERROR(fill(*existing, state.name, *state.values));
    if (made.muon) forget_variances(*parameters.rbsg);
    if (!made.muon && !has_variances(*parameters.rbsg)) begin_moments_anew(*parameters.rbsg);
  }
  for (Slot slot = 0; slot < vocabulary.size(); ++slot) parameters.rbsg->set_word(slot, vocabulary.word(slot));
  return {};
}

Result<Matrix> RbsgState::input_rows(Parameters& parameters, int64_t rows) const {
  return vectors_of(*parameters.rbsg, Rbsg::kCentre, rows);
}

Status RbsgState::add_to(CheckpointContent& content, Parameters& parameters) {
  Rbsg& rbsg = *parameters.rbsg;
  const int64_t rows = content.vocabulary.size();
  STREAMVEC_ASSIGN_OR_RETURN(input_, vectors_of(rbsg, Rbsg::kCentre, rows));
  STREAMVEC_ASSIGN_OR_RETURN(output_, vectors_of(rbsg, Rbsg::kContext, rows));
  STREAMVEC_ASSIGN_OR_RETURN(states_, rbsg.copy_states());
  index_ = rbsg.index().encode();
  content.input = std::as_const(input_).view();
  content.output = std::as_const(output_).view();
  content.optimizer.clear();  // the tables are not trained
  for (const Rbsg::Copy& state : states_) content.optimizer.push_back({state.name, state.values.view()});
  content.extra.push_back({kRbsgFile, [this](const auto& sink) { return sink(index_); }});
  return {};
}

Result<std::shared_ptr<const WordGenerator>> RbsgState::spellings(Parameters& parameters, const LockWords&) const {
  STREAMVEC_ASSIGN_OR_RETURN(auto copy, parameters.rbsg->vectors());
  return std::shared_ptr<const WordGenerator>(std::move(copy));
}

bool RbsgState::is_for_queries(std::string_view name) const {
  return name == kRbsgFile || (name.starts_with(kRbsgCentre) && name.find(".adam.") == name.npos);
}

Result<std::shared_ptr<const WordGenerator>> RbsgState::generator(Checkpoint& loaded,
                                                                  const std::string& directory) const {
  const auto bytes = loaded.extra.find(kRbsgFile);
  if (bytes == loaded.extra.end()) return std::shared_ptr<const WordGenerator>();
  const std::string path = directory + "/" + kRbsgFile;
  STREAMVEC_ASSIGN_OR_RETURN(const RbsgIndex index, RbsgIndex::decode(bytes->second, path));
  EncoderParameters encoder;
  for (const EncoderParameters::Named& each : encoder.all())
    *each.values = std::move(loaded.optimizer[kRbsgCentre + std::string(each.name)]);
  auto made = RbsgVectors::make(index, std::move(encoder));
  if (!made.ok()) return error(Code::kDataLoss, path, ": ", made.status().message());
  return std::shared_ptr<const WordGenerator>(std::move(*made));
}

}  // namespace streamvec
