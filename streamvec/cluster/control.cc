#include "streamvec/cluster/control.h"

#include <nlohmann/json.hpp>

namespace streamvec {
namespace {

using json = nlohmann::json;

constexpr char kMagic = 'c';

}  // namespace

bool is_control(std::string_view bytes) {
  return !bytes.empty() && bytes.front() == kMagic;
}

std::string encode(const Control& control) {
  json value = {{"kind", static_cast<int>(control.kind)}};
  if (control.kind == ControlKind::kView)
    value.update({{"workers", control.view.workers}, {"servers", control.view.servers}});
  if (control.view.epoch > 0) value["epoch"] = control.view.epoch;
  if (control.kind == ControlKind::kHello) value["fingerprint"] = control.fingerprint;
  if (control.kind == ControlKind::kFinished)
    value["trained"] = {control.trained.tokens, control.trained.pairs, control.trained.loss,
                        control.trained.loss_pairs};
  if (control.clock > 0) value["clock"] = control.clock;
  if (!control.text.empty()) value["text"] = control.text;
  if (control.figures)
    value["figures"] = {control.figures->clock, control.figures->bytes_sent, control.figures->bytes_received};
  return kMagic + value.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<Control> decode_control(std::string_view bytes) {
  const auto damaged = [] {
    return error(Code::kInvalidArgument, "a control message that nobody can read; the sender runs another version");
  };
  if (!is_control(bytes)) return damaged();
  const json value = json::parse(bytes.substr(1), nullptr, false);
  if (!value.is_object()) return damaged();
  try {
    Control control;
    const int kind = value.at("kind").get<int>();
    if (kind < 1 || kind > static_cast<int>(ControlKind::kEnd)) return damaged();
    control.kind = static_cast<ControlKind>(kind);
    control.fingerprint = value.value("fingerprint", uint64_t{0});
    control.text = value.value("text", std::string());
    control.clock = value.value("clock", int64_t{0});
    control.view.epoch = value.value("epoch", uint32_t{0});
    if (control.kind == ControlKind::kView) {
      control.view.workers = value.at("workers").get<std::vector<NodeId>>();
      control.view.servers = value.at("servers").get<std::vector<NodeId>>();
    }
    if (control.kind == ControlKind::kFinished) {
      const json& trained = value.at("trained");
      control.trained = {trained.at(0).get<int64_t>(), trained.at(1).get<int64_t>(), trained.at(2).get<double>(),
                         trained.at(3).get<int64_t>()};
    }
    if (const auto figures = value.find("figures"); figures != value.end())
      control.figures = {figures->at(0).get<int64_t>(), figures->at(1).get<int64_t>(), figures->at(2).get<int64_t>()};
    return control;
  } catch (const json::exception&) {
    return damaged();
  }
}

}  // namespace streamvec
