// Gives libFuzzer the target's seeds and words: they are written into the corpus directory, which is the first argument
// that is no flag, and beside it into DIRECTORY.dict.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"

namespace {

std::string quoted(const std::string& word) {
  std::string text = "\"";
  for (const char c : word) {
    char escaped[5];
    std::snprintf(escaped, sizeof escaped, "\\x%02X", static_cast<unsigned char>(c));
    text += escaped;
  }
  return text + "\"\n";
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  static std::vector<char*> extended(*arguments, *arguments + *count);
  static std::string dictionary;
  for (int i = 1; i < *count; ++i) {
    const std::string directory = (*arguments)[i];
    if (directory.starts_with('-')) continue;
    const streamvec::FuzzStart start = streamvec::fuzz_start();
    for (size_t seed = 0; seed < start.seeds.size(); ++seed)
      std::ofstream(directory + "/seed-" + std::to_string(seed), std::ios::binary) << start.seeds[seed];
    if (start.words.empty()) break;  // libFuzzer takes no empty dictionary
    std::ofstream words(directory + ".dict");
    for (const std::string& word : start.words) words << quoted(word);
    dictionary = "-dict=" + directory + ".dict";
    extended.push_back(dictionary.data());
    break;
  }
  extended.push_back(nullptr);
  *count = static_cast<int>(extended.size()) - 1;
  *arguments = extended.data();
  return 0;
}
