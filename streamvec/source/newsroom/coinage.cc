#include "streamvec/source/newsroom/coinage.h"

#include <string_view>

#include "streamvec/core/status.h"
#include "streamvec/source/planted.h"
#include "streamvec/source/planted_sentences.h"

namespace streamvec::newsroom {
namespace {

constexpr std::string_view kFirstParts =
    "aero aqua astro crypto cyber electro geo hydro macro mega micro mono nano neo photo poly retro thermo turbo ultra";

struct LastParts {
  std::string_view word_class, parts;
};
constexpr LastParts kLastParts[] = {
    {"animals", "saur pod"},    {"foods", "loaf broth"},      {"professions", "wright grapher"},
    {"colours", "chrome tint"}, {"vehicles", "mobile craft"}, {"instruments", "phone chord"},
    {"clothes", "wear vest"},   {"plants", "wort flora"},     {"sports", "ball thlon"},
    {"minerals", "lith zite"},
};

// Of the 20 first parts of each last part 14 are known, 3 coined and 3 unseen; which ones turns from one last part to
// the next, so that each first part is met in most classes.
constexpr size_t kKnown = 14, kCoined = 3, kTurn = 7;

std::vector<ClassCoinage> make_coinage() {
  const planted::Words first_parts = planted::split(kFirstParts);
  std::vector<ClassCoinage> classes;
  size_t turn = 0;
  for (const LastParts& list : kLastParts) {
    STREAMVEC_CHECK_EQ(planted_truth().classes[classes.size()].name, list.word_class);
    ClassCoinage& words = classes.emplace_back();
    for (const std::string& last : planted::split(list.parts)) {
      for (size_t i = 0; i < first_parts.size(); ++i) {
        auto& kind = i < kKnown ? words.known : i < kKnown + kCoined ? words.coined : words.unseen;
        kind.push_back(first_parts[(i + turn) % first_parts.size()] + last);
      }
      turn += kTurn;
    }
  }
  return classes;
}

}  // namespace

const std::vector<ClassCoinage>& coinage() {
  static const std::vector<ClassCoinage> classes = make_coinage();
  return classes;
}

}  // namespace streamvec::newsroom
