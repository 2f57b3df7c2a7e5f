// The form in which values of an all-reduce travel from rank to rank.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace streamvec {

// Both sides cut all values into the same pieces; `at` is where a piece begins. Several threads may be at pieces that
// have nothing in common.
class ValueForm {
 public:
  // A piece may be cut again, for several threads, after every so many of its values: its bytes are the same.
  static constexpr size_t kUnit = 4'096;
  virtual ~ValueForm() = default;
  virtual size_t bytes(size_t at, size_t count) const = 0;
  // REQUIRES: room for bytes(at, values.size()), here and below.
  virtual void encode(size_t at, std::span<const float> values, char* bytes) = 0;
  virtual void decode(size_t at, const char* bytes, std::span<float> values) const = 0;
  // To what has come this rank's own values are added, and all is divided.
  virtual void add(size_t at, std::span<const float> values, float divisor, char* bytes) = 0;
};

// As they are: 4 bytes a value.
std::unique_ptr<ValueForm> whole_form();
// Rounded to bf16 (kernel/bf16_values.h): 2 bytes a value.
std::unique_ptr<ValueForm> bf16_form();
// Blocks of 256 values: whole sevenths of the largest of them, half a byte a value. From `whole_from` on as they are.
// What this rank's pieces do not say of what they were to say stays in `left_out`, one for each value, and is added to
// the next that it encodes there: so in each call of an all-reduce every place has to be encoded, or added to, once,
// and always at the same moment of it (the same ranks in the same order). Nothing is left where values are not finite.
// `left_out` is borrowed; zeros at first.
std::unique_ptr<ValueForm> fourbit_form(size_t whole_from, std::span<float> left_out);
// The same with whole steps of a 127th: a byte a value.
std::unique_ptr<ValueForm> eightbit_form(size_t whole_from, std::span<float> left_out);

}  // namespace streamvec
