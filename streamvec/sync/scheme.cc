#include "streamvec/sync/scheme.h"

#include <array>

namespace streamvec {

Result<Admission> parse_admission(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Admission>, 5> kNames = {{{"bsp", Admission::kBsp},
                                                                             {"backup", Admission::kBackup},
                                                                             {"ssp", Admission::kSsp},
                                                                             {"softsync", Admission::kSoftsync},
                                                                             {"async", Admission::kAsync}}};
  for (const auto& [known, admission] : kNames)
    if (known == name) return admission;
  return error(Code::kInvalidArgument, "no scheme of owners is called '", name,
               "'; try bsp, backup, ssp, softsync or async");
}

}  // namespace streamvec
