#include "streamvec/cluster/control.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "streamvec/core/json.h"

namespace streamvec {
namespace {

using json = nlohmann::json;

constexpr char kMagic = 'c';

json to_json(const TrainedTotals& trained) {
  return {trained.tokens, trained.pairs, trained.loss, trained.loss_pairs};
}

// JSON has no NaN, which the loss of a run that diverges is: it is null there.
TrainedTotals totals_from(const json& trained) {
  const json& loss = trained.at(2);
  return {trained.at(0).get<int64_t>(), trained.at(1).get<int64_t>(),
          loss.is_null() ? std::numeric_limits<double>::quiet_NaN() : loss.get<double>(), trained.at(3).get<int64_t>()};
}

bool is_kind(int kind) {
  return (kind >= static_cast<int>(ControlKind::kHello) && kind <= static_cast<int>(ControlKind::kSaved)) ||
         (kind >= static_cast<int>(ControlKind::kAsk) && kind <= static_cast<int>(ControlKind::kTextOver));
}

// What only pieces' messages have.
void add_pieces(const Control& control, json& value) {
  for (const PieceRange& range : control.pieces) value["pieces"].push_back({range.begin, range.end});
  if (control.kind == ControlKind::kAsk)
    value.update({{"wanted", control.wanted}, {"trained", to_json(control.trained)}});
  const TextStanding& standing = control.standing;
  if (control.kind != ControlKind::kPieces && control.kind != ControlKind::kTextOver &&
      control.kind != ControlKind::kGreeting)
    return;
  value["standing"] = {standing.finished_before, standing.tokens, standing.pairs};
  for (const PieceRange& range : standing.finished) value["finished"].push_back({range.begin, range.end});
  for (const auto& [node, trained] : standing.trained)
    value["trained_by"].push_back({node, trained.tokens, trained.pairs});
}

constexpr int64_t kPiecesMax = 1 << 20;  // of a message

bool are_pieces(const std::vector<PieceRange>& pieces, int64_t count_max) {
  int64_t count = 0;
  for (const PieceRange& range : pieces) {
    if (range.begin < 0 || range.end < range.begin || range.end - range.begin > count_max - count) return false;
    count += range.end - range.begin;
  }
  return true;
}

void read_ranges(const json& value, const char* name, std::vector<PieceRange>& ranges) {
  if (const auto found = value.find(name); found != value.end())
    for (const json& range : *found) ranges.push_back({range.at(0).get<int64_t>(), range.at(1).get<int64_t>()});
}

void read_pieces(const json& value, Control& control) {
  read_ranges(value, "pieces", control.pieces);
  control.wanted = value.value("wanted", int64_t{0});
  if (const auto standing = value.find("standing"); standing != value.end())
    control.standing = {standing->at(0).get<int64_t>(), standing->at(1).get<int64_t>(), standing->at(2).get<int64_t>()};
  read_ranges(value, "finished", control.standing.finished);
  if (const auto by = value.find("trained_by"); by != value.end())
    for (const json& node : *by)
      control.standing.trained[node.at(0).get<NodeId>()] = {node.at(1).get<int64_t>(), node.at(2).get<int64_t>(), 0, 0};
  if (control.kind == ControlKind::kFinished || control.kind == ControlKind::kAsk)
    control.trained = totals_from(value.at("trained"));
}

}  // namespace

bool is_control(std::string_view bytes) {
  return !bytes.empty() && bytes.front() == kMagic;
}

std::string encode(const Control& control) {
  json value = {{"kind", static_cast<int>(control.kind)}};
  if (control.kind == ControlKind::kView)
    value.update({{"workers", control.view.workers}, {"servers", control.view.servers}});
  if (!control.view.retired.empty()) value["retired"] = control.view.retired;
  for (const SlowOwner& slow : control.slow) value["slow"].push_back({slow.node, slow.took_s, slow.others_s});
  if (control.view.epoch > 0) value["epoch"] = control.view.epoch;
  if (control.kind == ControlKind::kHello || control.kind == ControlKind::kGreeting)
    value.update({{"fingerprint", control.fingerprint},
                  {"rows", control.rows},
                  {"heard", control.heard},
                  {"address", control.address}});
  for (const auto& [node, address] : control.addresses) value["addresses"].push_back({node, address});
  if (control.kind == ControlKind::kFinished) value["trained"] = to_json(control.trained);
  add_pieces(control, value);
  if (control.clock > 0) value["clock"] = control.clock;
  if (!control.text.empty()) value["text"] = control.text;
  if (control.figures)
    value["figures"] = {control.figures->clock, control.figures->bytes_sent, control.figures->bytes_received};
  return kMagic + json_text(value);
}

Result<Control> decode_control(std::string_view bytes) {
  const auto damaged = [] {
    return error(Code::kInvalidArgument, "a control message that nobody can read; the sender runs another version");
  };
  if (!is_control(bytes)) return damaged();
  const json value = parse_json(bytes.substr(1));
  if (!value.is_object()) return damaged();
  try {
    Control control;
    const int kind = value.at("kind").get<int>();
    if (!is_kind(kind)) return damaged();
    control.kind = static_cast<ControlKind>(kind);
    control.fingerprint = value.value("fingerprint", uint64_t{0});
    control.rows = value.value("rows", uint64_t{0});
    control.heard = value.value("heard", uint64_t{0});
    control.address = value.value("address", std::string());
    if (const auto addresses = value.find("addresses"); addresses != value.end())
      for (const json& each : *addresses) control.addresses[each.at(0).get<NodeId>()] = each.at(1).get<std::string>();
    control.text = value.value("text", std::string());
    control.clock = value.value("clock", int64_t{0});
    control.view.epoch = value.value("epoch", uint32_t{0});
    if (control.kind == ControlKind::kView) {
      control.view.workers = value.at("workers").get<std::vector<NodeId>>();
      control.view.servers = value.at("servers").get<std::vector<NodeId>>();
      control.view.retired = value.value("retired", std::vector<NodeId>());
    }
    if (const auto slow = value.find("slow"); slow != value.end())
      for (const json& each : *slow)
        control.slow.push_back({each.at(0).get<NodeId>(), each.at(1).get<double>(), each.at(2).get<double>()});
    read_pieces(value, control);
    if (!are_pieces(control.pieces, kPiecesMax)) return damaged();
    // Which nobody counts out beyond the text.
    if (!are_pieces(control.standing.finished, std::numeric_limits<int64_t>::max())) return damaged();
    if (const auto figures = value.find("figures"); figures != value.end())
      control.figures = {figures->at(0).get<int64_t>(), figures->at(1).get<int64_t>(), figures->at(2).get<int64_t>()};
    return control;
  } catch (const json::exception&) {
    return damaged();
  }
}

}  // namespace streamvec
