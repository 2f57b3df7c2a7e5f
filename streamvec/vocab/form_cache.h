// Remembers the forms of spellings met lately, so that a stemmer is asked about types and not about tokens.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "streamvec/vocab/form.h"

namespace streamvec {

// One cache line a spelling, found by its hash; a newer spelling takes an older one's place. Fixed memory (4 MB).
// What does not fit a line is asked for each time. Not thread-safe.
class FormCache {
 public:
  // As settled_form() says; the view is valid until the next call. nullopt: the spelling is left out.
  // REQUIRES: form_of is not empty, and always the same function.
  std::optional<std::string_view> form(const FormOf& form_of, std::string_view spelling, uint64_t hash) {
    if (lines_.empty()) lines_.resize(size_t{1} << kBits);
    Line& line = lines_[hash >> (64 - kBits)];
    if (line.spelling() == spelling) return line.form();
    const std::optional<std::string> settled = settled_form(form_of, spelling);
    if (line.set(spelling, settled)) return line.form();
    if (!settled) return std::nullopt;
    uncached_ = *settled;
    return uncached_;
  }

  // Calls visit(spelling, form) for every spelling remembered, nullopt for those left out.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const Line& line : lines_)
      if (line.spelling_size > 0) visit(line.spelling(), line.form());
  }
  // Puts back what for_each() gave; false when it cannot have come from there.
  bool restore(std::string_view spelling, const std::optional<std::string_view>& form, uint64_t hash) {
    if (lines_.empty()) lines_.resize(size_t{1} << kBits);
    return !spelling.empty() && lines_[hash >> (64 - kBits)].set(spelling, form);
  }
  int64_t memory_bytes() const { return static_cast<int64_t>(lines_.capacity() * sizeof(Line)); }

 private:
  static constexpr int kBits = 16;
  static constexpr uint8_t kLeftOut = 255;
  struct alignas(64) Line {
    uint8_t spelling_size = 0;  // 0: nothing here
    uint8_t form_size = 0;      // kLeftOut: the spelling has no form
    char bytes[62];             // the spelling, then its form

    std::string_view spelling() const { return {bytes, spelling_size}; }
    std::optional<std::string_view> form() const {
      if (form_size == kLeftOut) return std::nullopt;
      return std::string_view(bytes + spelling_size, form_size);
    }
    template <typename Form>
    bool set(std::string_view new_spelling, const std::optional<Form>& new_form) {
      const size_t size = new_form ? new_form->size() : 0;
      if (new_spelling.size() + size > sizeof bytes) return false;
      spelling_size = static_cast<uint8_t>(new_spelling.size());
      form_size = new_form ? static_cast<uint8_t>(size) : kLeftOut;
      std::memcpy(bytes, new_spelling.data(), new_spelling.size());
      if (size > 0) std::memcpy(bytes + spelling_size, new_form->data(), size);
      return true;
    }
  };
  static_assert(sizeof(Line) == 64);

  std::vector<Line> lines_;
  std::string uncached_;
};

}  // namespace streamvec
