// What the checkpoint tests share: a small model whose every number tells its version, and child processes.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "streamvec/train/checkpoint.h"

namespace streamvec {

// Tables, words, state and cursors that all hold `version`: a mixture of two versions shows.
struct TestModel {
  explicit TestModel(int version_, int words = 3, int64_t dim = 2) : version(version_) {
    for (int i = 0; i < words; ++i) vocabulary.add("word" + std::to_string(i), version + 1);
    for (Matrix* table : {&input, &output, &adam}) *table = Matrix::make(words, dim).value();
    adagrad = Matrix::make(words, 1).value();
    for (Matrix* table : {&input, &output, &adam, &adagrad})
      for (int64_t i = 0; i < table->rows(); ++i)
        for (float& value : table->view().row_span(i)) value = static_cast<float>(version);
  }

  CheckpointContent content(int64_t step) const {
    return {.step = step,
            .model = "cbow",
            .vocabulary = vocabulary,
            .input = input.view(),
            .output = output.view(),
            .optimizer = {{"adam.first", adam.view()}, {"adagrad", adagrad.view()}},
            .state = {{"version", version}, {"lr", 0.1}, {"seed", ~uint64_t{0}}},
            .cursors = {{"version", version}}};
  }
  Status save(const std::string& dir, int64_t step) const { return save_checkpoint(dir, content(step)); }

  int version;
  Vocabulary vocabulary;
  Matrix input, output, adam, adagrad;
};

// The version that everything in the checkpoint has; -1 when it is a mixture.
inline int version_of(const Checkpoint& loaded) {
  const int version = loaded.state.value("version", -1);
  if (loaded.cursors.value("version", -1) != version || loaded.optimizer.size() != 2) return -1;
  for (Slot slot = 0; slot < loaded.vocabulary.size(); ++slot)
    if (loaded.vocabulary.count(slot) != version + 1) return -1;
  std::vector<const Matrix*> tables = {&loaded.input, &loaded.output};
  for (const auto& [name, table] : loaded.optimizer) tables.push_back(&table);
  for (const Matrix* table : tables) {
    if (table->rows() != loaded.vocabulary.size()) return -1;
    for (int64_t i = 0; i < table->rows(); ++i)
      for (const float value : table->view().row_span(i))
        if (value != static_cast<float>(version)) return -1;
  }
  return version;
}

inline std::vector<std::string> names_in(const std::string& dir) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) names.push_back(entry.path().filename());
  return names;
}

// Runs `body` in a process of its own, which is killed when this object goes, if not before.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<void()>& body) : pid_(::fork()) {
    if (pid_ != 0) return;
    body();
    ::_exit(0);
  }
  ~ChildProcess() { kill(); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

// What `body` returns in a process of its own, so that limits and user ids it sets end with it.
inline bool run_in_child(const std::function<bool()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body() ? 0 : 1);
  int status = -1;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace streamvec
